// rowq on MariaDB and MySQL with the driver mysql2.
import mysql from "mysql2/promise";

// A call passes all parameters by position; null is the default.
const parameters = {
    // parameters: generated from sql/contract.toml by make generate
    complete: "queue_name claim_id message_ids results",
    complete_and_dequeue:
        "queue_name claim_id message_ids results batch_size worker_name lease_seconds",
    dequeue_fast: "queue_name batch_size worker_name lease_seconds",
    enqueue:
        "queue_name body body_binary message_type headers priority delay_seconds run_at dedup_key " +
        "max_attempts group_key predecessor_ids on_predecessor_dead expire_seconds producer_name",
    extend_lease: "queue_name claim_id lease_seconds progress",
    maintain: "queue_name batch_size",
    release: "queue_name claim_id message_ids delay_seconds",
    retry_later: "queue_name claim_id message_ids delay_seconds error",
    // end of parameters
};

export async function connect(url) {
    const connection = await mysql.createConnection({
        uri: url,
        timezone: "Z",
        supportBigNumbers: true,
        bigNumberStrings: true, // Ids stay strings, because a number would lose digits.
    });
    // Without a listener, a lost idle connection ends the process. The next call raises the
    // error.
    connection.on("error", () => {});

    return {
        execute: async (statement, values) => (await connection.query(statement, values))[0],
        call: async (routine, given) => {
            const values = parameters[routine].split(" ").map((name) => given[name] ?? null);
            // A list of ids is JSON.
            const sent = values.map((value) => (Array.isArray(value) ? `[${value}]` : value));
            const marks = sent.map(() => "?");
            const [results] = await connection.query(`call rowq.${routine}(${marks})`, sent);
            return results[0];
        },
        begin: () => connection.beginTransaction(),
        commit: () => connection.commit(),
        rollback: () => connection.rollback(),
        close: () => connection.end(),
    };
}
