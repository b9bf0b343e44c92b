// The database interface; the URL's scheme selects the driver's file.
const drivers = {
    mariadb: "./mysql.js",
    mysql: "./mysql.js",
    oracle: "./oracle.js",
    postgres: "./postgres.js",
    postgresql: "./postgres.js",
    sqlserver: "./sqlserver.js",
};

/**
 * Open a connection: `call(routine, arguments)` returns rows, `execute(statement, values)` runs a
 * statement with `?` for each value, and `transaction(work)` commits unless `work` throws.
 */
export async function connect(url) {
    const driver = drivers[url?.split(":")[0]];
    if (!driver) throw new Error(`DATABASE_URL must begin with one of ${Object.keys(drivers)}`);
    const connection = await (await import(driver)).connect(url);

    // A heartbeat may come during another call: run calls in turn.
    let last = Promise.resolve();
    const inTurn = (call) => (last = last.then(call, call));
    return {
        call: (routine, given) => inTurn(() => connection.call(routine, given)),
        execute: (statement, values = []) => inTurn(() => connection.execute(statement, values)),
        transaction: async (work) => {
            await connection.begin();
            try {
                await work();
            } catch (error) {
                await connection.rollback();
                throw error;
            }
            await connection.commit();
        },
        close: () => connection.close().catch(() => {}),
    };
}

/** Return whether rowq refused a call, with this number if one is passed. */
export function isRefused(error, number = "RQ7\\d\\d") {
    return new RegExp(`${number} \\w+: `).test(error.message);
}
