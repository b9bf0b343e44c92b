// A worker of rowq, as docs/examples/README.md describes it: node dist/worker.js QUEUE_NAME
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { call, isRefused, type Routines } from "./rowq.js";

type Message = Routines["dequeue_fast"]["row"];
interface Order {
    order: number;
    fail: 0 | 1;
    seconds?: number;
}

const queue_name = process.argv[2] ?? "";
if (!queue_name) throw new Error("usage: worker.js QUEUE_NAME");

// step 1: say who you are, how many messages you want at a time, and for how long.
const worker_name = `${hostname()} ${process.pid}`;
const batch_size = 10;
const lease_seconds = Number(process.env["LEASE_SECONDS"] ?? 30);

/** What this worker is there for. An exception means another attempt. */
async function handle(message: Message): Promise<void> {
    const { order, fail, seconds }: Order = JSON.parse(message.body ?? "");
    if (seconds) await sleep(seconds * 1000);
    if (fail && message.attempt === 1) throw new Error(`order ${order} fails at its first attempt`);
}

// step 2: a signal asks the loops to end; it ends nothing by itself.
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop.abort());

async function pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, null, { signal: stop.signal }).catch(() => {});
}

// step 3: the pool replaces a lost connection; the loops go on after a pause that grows.
const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 3 });
pool.on("error", (error) => console.error(error.message));

/** Repeat a turn until a signal comes. */
async function repeat(turn: () => Promise<void>): Promise<void> {
    let milliseconds = 100;
    while (!stop.signal.aborted) {
        try {
            await turn();
            milliseconds = 100;
        } catch (error) {
            if (isRefused(error)) throw error; // No queue of this name, say: it does not help to wait.
            console.error(`${error}; next try in ${milliseconds} ms`);
            await pause(milliseconds);
            milliseconds = Math.min(2 * milliseconds, 5000);
        }
    }
}

// step 4: call maintain once a second, on a connection that no message can hold up.
async function keepHouse(): Promise<void> {
    await call(pool, "maintain", { queue_name });
    await pause(1000);
}

let idle = 50;
async function work(): Promise<void> {
    // step 5: lease a batch; the call is a transaction of its own.
    const batch = { queue_name, batch_size, worker_name, lease_seconds };
    const messages = await call(pool, "dequeue_fast", batch);

    // step 6: while there is nothing, ask less and less often.
    if (messages.length === 0) {
        await pause(idle);
        idle = Math.min(2 * idle, 1000);
        return;
    }
    idle = 50;
    try {
        await workOn(messages);
    } catch (error) {
        // The claim has run out: its messages are somebody else's.
        if (!isRefused(error, "RQ721")) throw error;
    }
}

/** Handle the messages of one claim, one after the other. */
async function workOn(messages: Message[]): Promise<void> {
    const claim = { queue_name, claim_id: messages[0]!.claim_id };
    let isLost = false;

    // step 7: extend the lease long before its end, for as long as the claim is at work.
    const heartbeat = setInterval(() => {
        call(pool, "extend_lease", { ...claim, lease_seconds }).catch(() => {
            isLost = true;
        });
    }, (lease_seconds * 1000) / 3);
    try {
        let message: Message | undefined;
        while ((message = messages[0])) {
            // step 8: begin nothing after a signal, nor what is perhaps not yours any more.
            if (isLost) return;
            if (stop.signal.aborted) break;

            // step 9: do the work. It may have been done before, by a worker that was killed then.
            messages.shift();
            const one = { ...claim, message_ids: [message.message_id] };
            const error = await handle(message).then(() => null, String);

            // step 10: what failed gets another attempt, after a delay that grows.
            if (error) {
                await call(pool, "retry_later", { ...one, error });
                continue;
            }

            // step 11: what is done is completed, by the claim that still has it.
            const [done] = await call(pool, "complete", one);
            if (done?.outcome === "completed") {
                console.log(`done ${queue_name} ${message.message_id} ${message.attempt}`);
            }
        }

        // step 12: give back what you have not begun; no attempt is spent.
        if (messages.length > 0) await call(pool, "release", claim);
    } finally {
        clearInterval(heartbeat);
    }
}

await Promise.all([repeat(keepHouse), repeat(work)]);
await pool.end();
