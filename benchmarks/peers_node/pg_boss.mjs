// pg-boss in the roles of talk.mjs.
import { load, main, versionOf } from "./talk.mjs";

const { PgBoss } = load("pg-boss");

async function start(options) {
    const boss = new PgBoss(options);
    boss.on("error", (error) => console.error(error));
    await boss.start();
    return boss;
}

// As its manual recommends for large queues, a partition per queue; notify wakes the workers.
async function prepare({ url, queue }) {
    const boss = await start({ connectionString: url });
    await boss.createQueue(queue, { partition: true, notify: true });
    await boss.stop();
    return { prepared: true, version: versionOf("pg-boss") };
}

async function produce({ url, queue, bulk, delay_seconds: delay }) {
    const boss = await start({ connectionString: url, supervise: false, schedule: false });
    await boss.getQueue(queue);
    const startAfter = () => (delay > 0 ? { startAfter: new Date(Date.now() + delay * 1000) } : {});
    const send =
        bulk === 1
            ? ([body]) => boss.send(queue, body, startAfter())
            : (bodies) =>
                  boss.insert(
                      queue,
                      bodies.map((data) => ({ data, ...startAfter() })),
                  );
    return { send, close: () => boss.stop() };
}

// A worker fetches again at once after a full batch; for batches of 1, the handler requests it.
async function consume({ url, queue, workers, batch }) {
    const boss = await start({ connectionString: url, useListenNotify: true, max: workers + 2 });
    const options = { batchSize: batch, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
    const begin = async (handle) => {
        for (let number = 0; number < workers; number += 1) {
            const id = await boss.work(queue, options, async (jobs) => {
                for (const job of jobs) handle(job.data);
                if (batch === 1) boss.notifyWorker(id);
            });
        }
        return () => boss.offWork(queue, { wait: true });
    };
    return { begin, close: () => boss.stop() };
}

await main({ prepare, produce, consume });
