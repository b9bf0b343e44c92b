// pg-boss in benchmarks/studies/features: what ticks of its schedules cost, and jobs with an output.
//
// It is told {url, queue, schedules} and answers each order with {done} when it has obeyed:
//     {"do": "prepare"}                    install it, with the queue and schedules of each minute
//     {"do": "start", "scheduler": true}   start it, or not; done is the session's server process
//     {"do": "sql", "text": "set .."}      run a statement in the session
//     {"do": "tick"}                       one pass of the schedules, to the end
//     {"do": "insert", "jobs": 50}
//     {"do": "take", "jobs": 50, "output": false}         fetch and complete
import { load, nextOrder, say, versionOf } from "./talk.mjs";

const { PgBoss } = load("pg-boss");
const { Pool } = load("pg");

const DATA = { text: "x".repeat(189) };
const FORWARDING = "__pgboss__send-it";

const { url, queue, schedules } = await nextOrder();
const pool = new Pool({ connectionString: url, max: 1, idleTimeoutMillis: 0 });

// Lets the scheduler's statements through while a tick is measured, and one look for due schedules
// for each tick. A tick ends when the jobs are completed that the scheduler has forwarded to itself.
class Gate {
    isOpen = true;
    isHeld = false;
    mayLook = false;
    waiting = [];

    constructor() {
        this.held = new Promise((resolve) => (this.onHeld = resolve));
    }

    async query(text, values) {
        const looks = text.includes("cron_on");
        if (looks && !this.isHeld) {
            this.isHeld = true;
            this.isOpen = false;
            this.onHeld();
        }
        while (looks ? !this.mayLook : !this.isOpen) {
            await new Promise((go) => this.waiting.push(go));
        }
        if (looks) this.mayLook = false;
        const result = await pool.query(text, values);
        if (values?.[0] === FORWARDING && text.includes("completed")) {
            this.isOpen = false;
            this.onEnd();
        }
        return result;
    }

    tick() {
        const ended = new Promise((resolve) => (this.onEnd = resolve));
        this.isOpen = this.mayLook = true;
        for (const go of this.waiting.splice(0)) go();
        return ended;
    }
}

async function start(executeSql, options) {
    const boss = new PgBoss({ db: { executeSql }, supervise: false, ...options });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    return boss;
}

const gate = new Gate();
const boss = await start((text, values) => pool.query(text, values), { schedule: false });

const acts = {
    async prepare() {
        await boss.createQueue(queue, { partition: true });
        for (let number = 0; number < schedules; number += 1) {
            await boss.schedule(queue, "* * * * *", DATA, { key: `${number}` });
        }
        await start((text, values) => pool.query(text, values), { schedule: true });
        return versionOf("pg-boss");
    },
    async start({ scheduler }) {
        const often = { cronMonitorIntervalSeconds: 1, cronWorkerIntervalSeconds: 1 };
        if (scheduler) {
            await start((text, values) => gate.query(text, values), { schedule: true, ...often });
            await gate.held;
        }
        await boss.getQueue(queue);
        const { rows } = await pool.query("select pg_backend_pid() as pid");
        return rows[0].pid;
    },
    sql: ({ text }) => pool.query(text).then(() => true),
    tick: () => gate.tick().then(() => true),
    async insert({ jobs }) {
        await boss.insert(
            queue,
            Array.from({ length: jobs }, () => ({ data: DATA })),
        );
        return true;
    },
    async take({ jobs, output }) {
        const taken = await boss.fetch(queue, { batchSize: jobs });
        const ids = taken.map(({ id }) => id);
        await boss.complete(queue, ids, ...(output ? [DATA] : []));
        return taken.length;
    },
};

for (let order = await nextOrder(); !order.stop; order = await nextOrder()) {
    say({ done: await acts[order.do](order) });
}
process.exit(0);
