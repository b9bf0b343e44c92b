// rowq on SQL Server and Azure SQL with the driver tedious. Not tested on SQL Server.
import { Connection, Request, TYPES } from "tedious";

export async function connect(url) {
    const { hostname, port, username, password, pathname, searchParams } = new URL(url);
    const connection = new Connection({
        server: hostname,
        authentication: {
            type: "default",
            options: {
                userName: decodeURIComponent(username),
                password: decodeURIComponent(password),
            },
        },
        options: {
            port: Number(port || 1433),
            database: decodeURIComponent(pathname.slice(1)),
            encrypt: searchParams.get("encrypt") !== "no",
            trustServerCertificate: searchParams.get("trustServerCertificate") === "true",
            useColumnNames: true,
            rowCollectionOnRequestCompletion: true,
        },
    });
    // Without a listener, a lost idle connection ends the process. The next call raises the
    // error.
    connection.on("error", () => {});
    const done = (start) =>
        new Promise((resolve, reject) => {
            start((error, count, rows) => (error ? reject(error) : resolve(rows)));
        });
    await done((callback) => connection.connect(callback));

    // All values are sent as text, which the server converts. Ids stay strings.
    const run = async (method, text, given) => {
        const rows = await done((callback) => {
            const request = new Request(text, callback);
            for (const [name, value] of Object.entries(given)) {
                const sent = Array.isArray(value) ? `[${value}]` : String(value); // Lists are JSON.
                request.addParameter(name, TYPES.NVarChar, sent);
            }
            connection[method](request);
        });
        return rows.map((columns) =>
            Object.fromEntries(Object.entries(columns).map(([name, { value }]) => [name, value])),
        );
    };
    return {
        execute: (statement, values) => {
            let place = 0;
            const text = statement.replaceAll("?", () => `@value${place++}`);
            const given = values.map((value, index) => [`value${index}`, value]);
            return run("execSql", text, Object.fromEntries(given));
        },
        // dequeue_fast is named DequeueFast.
        call: (routine, given) => {
            const name = routine.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
            return run("callProcedure", `rowq.${name}`, given);
        },
        begin: () => done((callback) => connection.beginTransaction(callback)),
        commit: () => done((callback) => connection.commitTransaction(callback)),
        rollback: () => done((callback) => connection.rollbackTransaction(callback)),
        close: async () => connection.close(),
    };
}
