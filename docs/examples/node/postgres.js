// rowq on PostgreSQL, by the driver pg.
import pg from "pg";

export async function connect(url) {
    const client = new pg.Client({ connectionString: url });
    // The loss of an idle connection is told to a listener, or else ends the process. The next call
    // tells it, too.
    client.on("error", () => {});
    await client.connect();

    const execute = async (statement, values) => {
        let place = 0;
        const text = statement.replaceAll("?", () => `$${++place}`);
        return (await client.query(text, values)).rows;
    };
    return {
        execute,
        // Ids come as strings and go as strings, because a number would lose digits.
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
