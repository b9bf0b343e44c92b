"""PostgreSQL, as the engine-neutral tests see it: calls, errors, transactions, row counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from rowq.contract import Routine, load_contract

PER_QUEUE = (
    "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "archive",
)  # fmt: skip
"""The tables with rows of a queue's messages."""

Connection = psycopg.Connection[Any]


class PostgresDialect:
    """PostgreSQL through psycopg, connections in autocommit."""

    database_error: type[Exception] = psycopg.Error

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Call a routine with these arguments by name; return column names and rows."""
        types = {one.name: one.type for one in routine.parameters}
        spelled = load_contract().types
        given = ", ".join(
            f"p_{name} => %s::{spelled[types[name]]['postgres']}" for name in arguments
        )
        verb = "call" if routine.kind == "procedure" else "select * from"
        values = [_value(types[name], value) for name, value in arguments.items()]
        with connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(f"{verb} rowq.{routine.name}({given})".encode(), values)
            columns = [column.name.removeprefix("p_") for column in cursor.description or ()]
            return columns, cursor.fetchall()

    def error(self, error: Exception) -> tuple[str, str]:
        """Return SQLSTATE and first line of an error."""
        assert isinstance(error, psycopg.Error)
        return error.sqlstate or "", error.diag.message_primary or str(error)

    def begin(self, connection: Connection) -> None:
        """Open a transaction, read committed."""
        connection.execute("begin isolation level read committed")

    def commit(self, connection: Connection) -> None:
        """Commit it."""
        connection.execute("commit")

    def rollback(self, connection: Connection) -> None:
        """Roll it back."""
        connection.execute("rollback")

    def stored(self, connection: Connection, queue: str) -> dict[str, int]:
        """Return how many rows each table has for a queue."""
        found = {}
        for table in PER_QUEUE:
            row = connection.execute(
                f"""
                select count(*) from rowq.{table} t
                where t.part_id in (select part_id from rowq.queue where queue_name = %s)
                """.encode(),
                [queue],
            ).fetchone()
            found[table] = row[0] if row else 0
        return found


def _value(kind: str, value: Any) -> Any:
    return json.dumps(value) if kind == "json" and value is not None else value
