"""The dialect of PostgreSQL: calls, errors, transactions."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from rowq.contract import Parameter, Routine, load_contract
from tests.engines.postgres.catalog import PostgresCatalog
from tests.engines.postgres.tables import PostgresTables
from tests.helpers.json_text import json_text

Connection = psycopg.Connection[Any]


class PostgresDialect(PostgresCatalog, PostgresTables):
    """PostgreSQL through psycopg, connections in autocommit."""

    database_error: type[Exception] = psycopg.Error

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        types = {parameter.name: parameter.type for parameter in routine.parameters}
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

    def can_pass(self, parameter: Parameter, value: Any) -> bool:
        del parameter, value
        return True

    def error(self, error: Exception) -> tuple[str, str]:
        assert isinstance(error, psycopg.Error)
        return error.sqlstate or "", error.diag.message_primary or str(error)

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
        return connection.execute(statement.encode(), values or None)

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        connection.execute(f"begin isolation level {isolation}".encode())

    def commit(self, connection: Connection) -> None:
        connection.execute("commit")

    def rollback(self, connection: Connection) -> None:
        connection.execute("rollback")

    def reset(self, connection: Connection) -> None:
        super().reset(connection)
        self.execute(connection, "reset all")

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        connection.execute(f"set lock_timeout = '{seconds}s'".encode())

    def lock_table(self, connection: Connection, table: str) -> None:
        self.begin(connection)
        self.execute(connection, f"lock table rowq.{table} in access exclusive mode")

    def interrupt(self, connection: Connection, other: Connection) -> None:
        self.execute(connection, "select pg_cancel_backend(%s)", [other.info.backend_pid])

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        query = "select b.topic, b.queue_name from rowq.internal_bound_queues(%s::text[]) b"
        rows = connection.execute(query, [list(topics)]).fetchall()
        assert len(set(rows)) == len(rows)
        return set(rows)

    def begin_prepared(self, connection: Connection, name: str) -> None:
        del name
        self.begin(connection)

    def prepare(self, connection: Connection, name: str) -> None:
        connection.execute(f"prepare transaction '{name}'".encode())

    def commit_prepared(self, connection: Connection, name: str) -> None:
        connection.execute(f"commit prepared '{name}'".encode())

    def allows_prepared(self, connection: Connection) -> bool:
        return connection.execute("show max_prepared_transactions").fetchone() != ("0",)


def _value(kind: str, value: Any) -> Any:
    return json_text(value) if kind == "json" and value is not None else value


DIALECT = PostgresDialect()
