// rowq on PostgreSQL with the driver pg.
import pg from "pg";

export async function connect(url) {
    const client = new pg.Client({ connectionString: url });
    // Without a listener, a lost idle connection ends the process. The next call raises the
    // error.
    client.on("error", () => {});
    await client.connect();

    const execute = async (statement, values) => {
        let place = 0;
        const text = statement.replaceAll("?", () => `$${++place}`);
        return (await client.query(text, values)).rows;
    };
    return {
        execute,
        // Ids are strings in both directions, because a number would lose digits.
        call: (routine, given) => {
            const names = Object.keys(given).map((name) => `p_${name} => ?`);
            return execute(`select * from rowq.${routine}(${names})`, Object.values(given));
        },
        begin: () => client.query("begin"),
        commit: () => client.query("commit"),
        rollback: () => client.query("rollback"),
        close: () => client.end(),
    };
}
