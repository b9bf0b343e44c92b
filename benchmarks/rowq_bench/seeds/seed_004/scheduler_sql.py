"""The statements of a scheduler's two strategies, for seed 004.

The table has the columns and indexes that db-scheduler documents. What it documents of its
strategies is written here anew: the pick by version, the pick by a locking update, the delete by
version. Its own code reads each picked row once more; the seed does not count that, and it is left
out here, in favour of the optimistic strategy.
"""

from __future__ import annotations

from dataclasses import dataclass

TASK = "once"
_TABLE = "rowq_bench.scheduled_tasks"


@dataclass(frozen=True, slots=True)
class Statements:
    """One engine's statements.

    tables: make the table. fill (first number, last number), settle: before a run.
    fetch (limit): due executions that nobody has picked; columns: instance, version, data.
    pick (who, instance, version), remove (instance, version): change one row or none.
    lock_and_fetch (who, limit): pick and return as fetch does, in one statement; where the engine
    has none, it is empty, and lock (limit) and mark (who), which takes the instances in place of
    {}, do it in a transaction.
    """

    tables: tuple[str, ...]
    fill: str
    settle: str
    fetch: str
    pick: str
    remove: str
    lock_and_fetch: str
    lock: str
    mark: str


_POSTGRES = Statements(
    tables=(
        "create schema rowq_bench",
        f"""
        create table {_TABLE} (
            task_name text not null,
            task_instance text not null,
            task_data bytea,
            execution_time timestamp with time zone not null,
            picked boolean not null,
            picked_by text,
            last_success timestamp with time zone,
            last_failure timestamp with time zone,
            consecutive_failures integer,
            last_heartbeat timestamp with time zone,
            version bigint not null,
            priority smallint,
            primary key (task_name, task_instance)
        )
        """,
        f"create index on {_TABLE} (execution_time)",
        f"create index on {_TABLE} (last_heartbeat)",
        f"create index on {_TABLE} (priority desc, execution_time)",
    ),
    fill=f"""
        insert into {_TABLE}
            (task_name, task_instance, task_data, execution_time, picked, version)
        select '{TASK}', n::text, convert_to(rpad(n::text, 200, 'x'), 'UTF8'),
               now() - interval '1 hour' + n * interval '1 microsecond', false, 1
        from generate_series($1::bigint, $2::bigint) n
    """,
    settle=f"vacuum (analyze) {_TABLE}",
    fetch=f"""
        select task_instance, version, task_data
        from {_TABLE}
        where picked = false and execution_time <= now()
        order by execution_time
        limit $1::integer
    """,
    pick=f"""
        update {_TABLE}
        set picked = true, picked_by = $1::text, last_heartbeat = now(), version = version + 1
        where picked = false and task_name = '{TASK}' and task_instance = $2::text
          and version = $3::bigint
    """,
    remove=f"""
        delete from {_TABLE}
        where task_name = '{TASK}' and task_instance = $1::text and version = $2::bigint
    """,
    lock_and_fetch=f"""
        update {_TABLE} one
        set picked = true, picked_by = $1::text, last_heartbeat = now(), version = version + 1
        where (one.task_name, one.task_instance) in (
            select two.task_name, two.task_instance
            from {_TABLE} two
            where two.picked = false and two.execution_time <= now()
            order by two.execution_time
            limit $2::integer
            for update skip locked
        )
        returning one.task_instance, one.version, one.task_data
    """,
    lock="",
    mark="",
)
_MARIADB = Statements(
    tables=(
        "create schema rowq_bench character set utf8mb4",
        f"""
        create table {_TABLE} (
            task_name varchar(100) not null,
            task_instance varchar(100) not null,
            task_data blob,
            execution_time timestamp(6) not null,
            picked boolean not null,
            picked_by varchar(50),
            last_success timestamp(6) null,
            last_failure timestamp(6) null,
            consecutive_failures int,
            last_heartbeat timestamp(6) null,
            version bigint not null,
            priority smallint,
            primary key (task_name, task_instance),
            key (execution_time),
            key (last_heartbeat),
            key (priority, execution_time)
        ) engine = innodb
        """,
    ),
    fill=f"""
        insert into {_TABLE}
            (task_name, task_instance, task_data, execution_time, picked, version)
        select '{TASK}', seq, rpad(seq, 200, 'x'),
               now(6) - interval 1 hour + interval seq microsecond, false, 1
        from seq_?_to_?
    """,
    settle=f"analyze table {_TABLE}",
    fetch=f"""
        select task_instance, version, task_data
        from {_TABLE}
        where picked = false and execution_time <= now(6)
        order by execution_time
        limit ?
    """,
    pick=f"""
        update {_TABLE}
        set picked = true, picked_by = ?, last_heartbeat = now(6), version = version + 1
        where picked = false and task_name = '{TASK}' and task_instance = ? and version = ?
    """,
    remove=f"""
        delete from {_TABLE}
        where task_name = '{TASK}' and task_instance = ? and version = ?
    """,
    lock_and_fetch="",
    lock=f"""
        select task_instance, version + 1, task_data
        from {_TABLE}
        where picked = false and execution_time <= now(6)
        order by execution_time
        limit ?
        for update skip locked
    """,
    mark=f"""
        update {_TABLE}
        set picked = true, picked_by = ?, last_heartbeat = now(6), version = version + 1
        where task_name = '{TASK}' and task_instance in ({{}})
    """,
)


def statements_of(url: str) -> Statements:
    """Return the statements of the engine of a URL."""
    return _POSTGRES if url.startswith("postgres") else _MARIADB
