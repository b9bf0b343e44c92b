// rowq on Oracle with the driver oracledb. Not tested on Oracle.
import oracledb from "oracledb";

// Ids stay strings, because a number would lose digits; a body is fetched as text.
function fetchTypeHandler({ name, dbType }) {
    if (name.endsWith("_ID") || dbType === oracledb.DB_TYPE_CLOB) return { type: oracledb.STRING };
    return dbType === oracledb.DB_TYPE_BLOB ? { type: oracledb.BUFFER } : undefined;
}
Object.assign(oracledb, { fetchTypeHandler, outFormat: oracledb.OUT_FORMAT_OBJECT });

export async function connect(url) {
    const { host, username, password, pathname } = new URL(url);
    const connection = await oracledb.getConnection({
        user: decodeURIComponent(username),
        password: decodeURIComponent(password),
        connectString: host + pathname,
    });

    // A call is its own transaction, unless the caller has begun one.
    let isOpen = false;
    const commitUnlessOpen = () => (isOpen ? undefined : connection.commit());
    return {
        execute: async (statement, values) => {
            let place = 0;
            const text = statement.replaceAll("?", () => `:${++place}`);
            const { rows } = await connection.execute(text, values);
            await commitUnlessOpen();
            return rows;
        },
        call: async (routine, given) => {
            const binds = { rows: { dir: oracledb.BIND_OUT, type: oracledb.CURSOR } };
            for (const [name, value] of Object.entries(given)) {
                binds[name] = Array.isArray(value) ? `[${value}]` : value; // Lists are JSON.
            }
            const names = Object.keys(binds).map((name) => `p_${name} => :${name}`);
            const text = `begin rowq.${routine}(${names}); end;`;
            const { outBinds } = await connection.execute(text, binds);
            const rows = await outBinds.rows.getRows();
            await outBinds.rows.close();
            await commitUnlessOpen();
            return rows.map((row) =>
                Object.fromEntries(
                    Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]),
                ),
            );
        },
        begin: async () => {
            isOpen = true;
        },
        commit: async () => {
            isOpen = false;
            await connection.commit();
        },
        rollback: async () => {
            isOpen = false;
            await connection.rollback();
        },
        close: () => connection.close(),
    };
}
