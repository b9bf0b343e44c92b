// A rowq worker, see docs/examples/README.md: node dist/worker.js QUEUE_NAME
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

// step 1: set the worker's name, the batch size and the length of the lease.
const worker_name = `${hostname()} ${process.pid}`;
const batch_size = 10;
const lease_seconds = Number(process.env["LEASE_SECONDS"] ?? 30);
const batch = { queue_name, batch_size, worker_name, lease_seconds };

/** Handle a message. An exception means a retry. */
async function handle(message: Message): Promise<void> {
    const { order, fail, seconds }: Order = JSON.parse(message.body ?? "");
    if (seconds) await sleep(seconds * 1000);
    if (fail && message.attempt === 1) throw new Error(`order ${order} fails at its first attempt`);
}

// step 2: a signal sets a flag that ends the loops.
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop.abort());

async function pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, null, { signal: stop.signal }).catch(() => {});
}

// step 3: the pool replaces a lost connection; the loops continue after a growing pause.
const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 3 });
pool.on("error", (error) => console.error(error.message));

/** Repeat a turn until a signal. */
async function repeat(turn: () => Promise<void>): Promise<void> {
    let milliseconds = 100;
    while (!stop.signal.aborted) {
        try {
            await turn();
            milliseconds = 100;
        } catch (error) {
            if (isRefused(error)) throw error; // For example an unknown queue: waiting does not help.
            console.error(`${error}; next try in ${milliseconds} ms`);
            await pause(milliseconds);
            milliseconds = Math.min(2 * milliseconds, 5000);
        }
    }
}

// step 4: call maintain once a second, on its own connection.
async function maintain(): Promise<void> {
    await call(pool, "maintain", { queue_name });
    await pause(1000);
}

let idle = 50;
async function work(): Promise<void> {
    // step 5: lease a batch; the call is its own transaction.
    let messages: Message[] = await call(pool, "dequeue_fast", batch);

    // step 6: poll an empty queue with growing pauses.
    if (messages.length === 0) {
        await pause(idle);
        idle = Math.min(2 * idle, 1000);
        return;
    }
    idle = 50;
    try {
        while (messages.length > 0) messages = await workOn(messages);
    } catch (error) {
        // The lease expired, and another worker has the messages.
        if (!isRefused(error, "RQ721")) throw error;
    }
}

/** Handle the messages of one claim in turn, and return the next ones. */
async function workOn(messages: Message[]): Promise<Message[]> {
    const claim = { queue_name, claim_id: messages[0]!.claim_id };
    const done: Message[] = [];
    let isLost = false;

    // step 7: extend the lease while the messages of the claim are handled.
    const heartbeat = setInterval(() => {
        call(pool, "extend_lease", { ...claim, lease_seconds }).catch(() => {
            isLost = true;
        });
    }, (lease_seconds * 1000) / 3);
    try {
        let message: Message | undefined;
        while ((message = messages[0])) {
            // step 8: start no message after a signal, or after the claim is lost.
            if (isLost) return [];
            if (stop.signal.aborted) break;

            // step 9: handle the message idempotently: a killed worker may have done it before.
            messages.shift();
            const error = await handle(message).then(() => null, String);
            if (!error) {
                done.push(message);
                continue;
            }

            // step 10: retry a failed message after a growing delay.
            const message_ids = [message.message_id];
            await call(pool, "retry_later", { ...claim, message_ids, error });
        }

        // step 11: complete messages with their claim id, and lease the next ones in the same call.
        const next = done.length > 0 ? await complete(claim.claim_id, done) : [];

        // step 12: release messages that are not started; no attempt is spent.
        if (messages.length > 0) await call(pool, "release", claim);
        return next;
    } finally {
        clearInterval(heartbeat);
    }
}

/** Complete messages and return the next ones; after a signal, or on an error, only complete. */
async function complete(claim_id: string, done: Message[]): Promise<Message[]> {
    const finished = { queue_name, claim_id, message_ids: done.map((one) => one.message_id) };
    let next: Message[] = [];
    let stale: string[] = [];
    const completeOnly = async () => {
        const rows = await call(pool, "complete", finished);
        stale = rows.filter((row) => row.outcome === "stale").map((row) => row.message_id);
    };
    const completeAndLease = async () => {
        const rows = await call(pool, "complete_and_dequeue", { ...batch, ...finished });
        stale = rows.filter((row) => row.outcome === "stale").map((row) => row.message_id);
        next = rows.filter((row) => row.outcome === "leased");
    };
    await (stop.signal.aborted ? completeOnly() : completeAndLease().catch(completeOnly));
    for (const { message_id, attempt } of done) {
        if (!stale.includes(message_id)) console.log(`done ${queue_name} ${message_id} ${attempt}`);
    }
    return next;
}

await Promise.all([repeat(maintain), repeat(work)]);
await pool.end();
