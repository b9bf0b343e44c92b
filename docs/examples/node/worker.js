// A rowq worker, see docs/examples/README.md: node worker.js QUEUE_NAME
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, isRefused } from "./database.js";

const queue_name = process.argv[2];
if (!queue_name) throw new Error("usage: node worker.js QUEUE_NAME");

// step 1: set the worker's name, the batch size and the length of the lease.
const worker_name = `${hostname()} ${process.pid}`;
const batch_size = 10;
const lease_seconds = Number(process.env.LEASE_SECONDS ?? 30);
const batch = { queue_name, batch_size, worker_name, lease_seconds };

/** Handle a message. An exception means a retry. */
async function handle(message) {
    const { order, fail, seconds } = JSON.parse(message.body);
    if (seconds) await sleep(seconds * 1000);
    if (fail && message.attempt === 1) throw new Error(`order ${order} fails at its first attempt`);
}

// step 2: a signal sets a flag that ends the loops.
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop.abort());

async function pause(milliseconds) {
    await sleep(milliseconds, null, { signal: stop.signal }).catch(() => {});
}

// step 3: if the connection is lost, open a new one after a growing pause.
async function connected(loop) {
    let milliseconds = 100;
    while (!stop.signal.aborted) {
        let database;
        try {
            database = await connect(process.env.DATABASE_URL);
            milliseconds = 100;
            await loop(database);
        } catch (error) {
            if (isRefused(error)) throw error; // For example an unknown queue: waiting does not help.
            console.error(`${error.message}; next try in ${milliseconds} ms`);
            await pause(milliseconds);
            milliseconds = Math.min(2 * milliseconds, 5000);
        } finally {
            await database?.close();
        }
    }
}

// step 4: call maintain once a second, on its own connection.
async function maintain(database) {
    while (!stop.signal.aborted) {
        await database.call("maintain", { queue_name });
        await pause(1000);
    }
}

async function work(database) {
    let idle = 50;
    let messages = [];
    while (!stop.signal.aborted || messages.length > 0) {
        // step 5: lease a batch; the call is its own transaction.
        if (messages.length === 0) messages = await database.call("dequeue_fast", batch);

        // step 6: poll an empty queue with growing pauses.
        if (messages.length === 0) {
            await pause(idle);
            idle = Math.min(2 * idle, 1000);
            continue;
        }
        idle = 50;
        try {
            messages = await workOn(database, messages);
        } catch (error) {
            // The lease expired, and another worker has the messages.
            if (!isRefused(error, "RQ721")) throw error;
            messages = [];
        }
    }
}

/** Handle the messages of one claim in turn, and return the next ones. */
async function workOn(database, messages) {
    const claim = { queue_name, claim_id: messages[0].claim_id };
    const done = [];
    let isLost = false;

    // step 7: extend the lease while the messages of the claim are handled.
    const heartbeat = setInterval(() => {
        database.call("extend_lease", { ...claim, lease_seconds }).catch(() => {
            isLost = true;
        });
    }, (lease_seconds * 1000) / 3);
    try {
        while (messages.length > 0) {
            // step 8: start no message after a signal, or after the claim is lost.
            if (isLost) return [];
            if (stop.signal.aborted) break;

            // step 9: handle the message idempotently: a killed worker may have done it before.
            const message = messages.shift();
            const error = await handle(message).then(() => null, String);
            if (!error) {
                done.push(message);
                continue;
            }

            // step 10: retry a failed message after a growing delay.
            const message_ids = [message.message_id];
            await database.call("retry_later", { ...claim, message_ids, error });
        }

        // step 11: complete messages with their claim id, and lease the next ones in the same call.
        const next = done.length > 0 ? await complete(database, claim, done) : [];

        // step 12: release messages that are not started; no attempt is spent.
        if (messages.length > 0) await database.call("release", claim);
        return next;
    } finally {
        clearInterval(heartbeat);
    }
}

/** Complete messages and return the next ones; after a signal, or on an error, only complete. */
async function complete(database, claim, done) {
    const finished = { ...claim, message_ids: done.map((message) => message.message_id) };
    const completeOnly = () => database.call("complete", finished);
    const rows = stop.signal.aborted
        ? await completeOnly()
        : await database.call("complete_and_dequeue", { ...batch, ...finished }).catch(completeOnly);
    const stale = rows.filter((row) => row.outcome === "stale").map((row) => row.message_id);
    for (const { message_id, attempt } of done) {
        if (!stale.includes(message_id)) console.log(`done ${queue_name} ${message_id} ${attempt}`);
    }
    return rows.filter((row) => row.outcome === "leased");
}

await Promise.all([connected(maintain), connected(work)]);
