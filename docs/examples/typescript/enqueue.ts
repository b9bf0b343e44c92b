// Enqueues a message with its order: node dist/enqueue.js QUEUE_NAME ORDER_NUMBER
import pg from "pg";
import { call } from "./rowq.js";

const [queue_name, order_number] = process.argv.slice(2);
if (!queue_name || !order_number) throw new Error("usage: enqueue.js QUEUE_NAME ORDER_NUMBER");

const client = new pg.Client({ connectionString: process.env["DATABASE_URL"] });
await client.connect();
await client.query(`
    create table if not exists orders (order_number integer primary key, total numeric(12, 2))
`);

/** Store an order and enqueue its message in one transaction. */
async function place(order: number, total: number): Promise<void> {
    await client.query("begin");
    try {
        await client.query("insert into orders values ($1, $2)", [order, total]);
        const body = JSON.stringify({ order, fail: 0 });
        const [sent] = await call(client, "enqueue", { queue_name: queue_name!, body });
        console.log(`order ${order}: ${sent!.outcome} as message ${sent!.message_id}`);
        if (total < 0) throw new RangeError(`order ${order} has a total of ${total}`);
        await client.query("commit");
    } catch (error) {
        await client.query("rollback");
        throw error;
    }
}

try {
    await place(Number(order_number), 11.77);
    await place(Number(order_number) + 1, -1);
} catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.log(`${error.message}: it was rolled back, and its message with it`);
} finally {
    await client.end();
}
