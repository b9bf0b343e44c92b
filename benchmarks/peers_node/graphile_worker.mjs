// graphile-worker in the roles of talk.mjs.
import { load, main, versionOf } from "./talk.mjs";

const { Logger, makeWorkerUtils, run, runMigrations } = load("graphile-worker");

const logger = new Logger(() => (level, message) => {
    if (level === "error") console.error(message);
});

async function prepare({ url }) {
    await runMigrations({ connectionString: url, logger });
    return { prepared: true, version: versionOf("graphile-worker") };
}

async function produce({ url, queue, bulk, delay_seconds: delay }) {
    const utils = await makeWorkerUtils({ connectionString: url, logger });
    await utils.withPgClient((client) => client.query("select 1"));
    const due = () => (delay > 0 ? { runAt: new Date(Date.now() + delay * 1000) } : {});
    const spec = ({ k }) => (k === undefined ? due() : { ...due(), queueName: k });
    const send =
        bulk === 1
            ? ([body]) => utils.addJob(queue, body, spec(body))
            : (bodies) =>
                  utils.addJobs(
                      bodies.map((payload) => ({ identifier: queue, payload, ...spec(payload) })),
                  );
    return { send, close: () => utils.release() };
}

// As its performance page recommends: a local queue of one batch, completions in bulk without delay.
// Named queues release one job each at a time, so a local queue would block the others.
async function consume({ url, queue, workers, batch, keys }) {
    const worker = {
        connectionString: url,
        concurrentJobs: workers,
        maxPoolSize: Math.max(10, workers + 2),
        localQueue: { size: batch > 1 && !keys ? batch : -1 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger,
    };
    const begin = async (handle) => {
        const taskList = { [queue]: async (body) => handle(body) };
        const noHandleSignals = true;
        const runner = await run({ preset: { worker }, taskList, noHandleSignals }, undefined, []);
        return () => runner.stop();
    };
    return { begin, close: async () => {} };
}

await main({ prepare, produce, consume });
