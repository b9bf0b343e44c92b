// Makes pg-boss's tables in the database of a URL, and jobs in every state, by its own client.
import { load } from "../../../benchmarks/peers_node/talk.mjs";

const { PgBoss } = load("pg-boss");
const boss = new PgBoss({ connectionString: process.argv[2], supervise: false, schedule: false });
boss.on("error", (error) => console.error(error));
await boss.start();
for (const name of ["mail", "other"]) await boss.createQueue(name);
for (const policy of ["exclusive", "key_strict_fifo"]) await boss.createQueue(policy, { policy });

// One of each state that is not imported.
for (const n of [-1, -2]) await boss.send("mail", { n }, { priority: 1000 });
// A batch would come in any order.
const [done] = await boss.fetch("mail");
const [active] = await boss.fetch("mail");
await boss.complete("mail", done.id);
const cancelled = await boss.send("mail", { n: -3 });
await boss.cancel("mail", cancelled);

await boss.send("mail", { n: 0, text: "ä🐘" }, { priority: 10, retryLimit: 4 });
await boss.send("mail", null, { priority: -1 });
await boss.send("mail", { n: 2 }, { singletonKey: "once" });
await boss.send("mail", { n: 3 }, { singletonKey: "twice" });
await boss.send("mail", { n: 4 }, { singletonKey: "twice" });
await boss.send("mail", { n: 5 }, { startAfter: 3600 });
await boss.insert("mail", Array.from({ length: 20 }, (_, n) => ({ data: { n: n + 6 } })));
await boss.send("other", { n: 100 });
await boss.send("exclusive", { n: 200 }, { singletonKey: "only" });
for (const n of [300, 301]) await boss.send("key_strict_fifo", { n }, { singletonKey: "order" });

// One that has failed once and waits for another attempt.
await boss.send("mail", { n: 26 }, { priority: 2000, retryLimit: 2, retryDelay: 1800 });
const [failed] = await boss.fetch("mail");
await boss.fail("mail", failed.id);
process.stdout.write(JSON.stringify({ active: active.data, failed: failed.data }) + "\n");
await boss.stop({ graceful: false });
