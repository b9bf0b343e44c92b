// What the programs need of a database, whichever it is: the scheme of the URL says whose file to use.
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

    // A heartbeat may come while another call is on its way: one call after the other.
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

/** Tell whether rowq has refused a call, with this number if one is given. */
export function isRefused(error, number = "RQ7\\d\\d") {
    return new RegExp(`${number} \\w+: `).test(error.message);
}
