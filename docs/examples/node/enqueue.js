// Enqueues a message with its order: node enqueue.js QUEUE_NAME ORDER_NUMBER
import { connect } from "./database.js";

const [queue_name, order_number] = process.argv.slice(2);
if (!order_number) throw new Error("usage: node enqueue.js QUEUE_NAME ORDER_NUMBER");

const database = await connect(process.env.DATABASE_URL);

/** Store an order and enqueue its message in one transaction. */
async function place(number, total) {
    await database.transaction(async () => {
        await database.execute("insert into orders values (?, ?)", [number, total]);
        const body = JSON.stringify({ order: number, fail: 0 });
        const [sent] = await database.call("enqueue", { queue_name, body });
        console.log(`order ${number}: ${sent.outcome} as message ${sent.message_id}`);
        if (total < 0) throw new RangeError(`order ${number} has a total of ${total}`);
    });
}

// The table may exist; not every engine has "create table if not exists".
const columns = "order_number integer primary key, total decimal(12, 2)";
await database.execute(`create table orders (${columns})`).catch(() => {});
try {
    await place(Number(order_number), 11.77);
    await place(Number(order_number) + 1, -1);
} catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.log(`${error.message}: it was rolled back, and its message with it`);
} finally {
    await database.close();
}
