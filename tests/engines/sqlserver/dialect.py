"""The dialect of SQL Server: calls, errors, transactions."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from rowq.contract import Parameter, Routine
from rowq.engines.sqlserver.driver import load_driver, numbers_of, rowq_error_of, text_of
from tests.engines.sqlserver.catalog import SqlserverCatalog, execute_named
from tests.engines.sqlserver.tables import SqlserverTables
from tests.engines.values import is_finite, read, spelled
from tests.helpers.rows import Rows

Connection = Any


class SqlserverDialect(SqlserverCatalog, SqlserverTables):
    """SQL Server and Azure SQL through pyodbc, connections in autocommit.

    It cannot interrupt a statement of another session, nor prepare a transaction.
    """

    @property
    def database_error(self) -> type[Exception]:
        """The driver's class of errors, loaded on first use."""
        error: type[Exception] = load_driver().Error
        return error

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        types = {parameter.name: parameter.type for parameter in routine.parameters}
        values = {name: spelled(types[name], value) for name, value in arguments.items()}
        with closing(connection.cursor()) as cursor:
            execute_named(connection, cursor, routine.name, values)
            columns, rows = _only_rows(cursor, routine.name)
        return columns, read(routine, columns, rows)

    def can_pass(self, parameter: Parameter, value: Any) -> bool:
        return is_finite(parameter, value)

    def error(self, error: Exception) -> tuple[str, str]:
        if fault := rowq_error_of(error):
            return fault[:5], fault
        numbers = sorted(numbers_of(error))
        return (str(numbers[0]) if numbers else ""), text_of(error)

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Rows:
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement.replace("%s", "?"), list(values))
            rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            while cursor.nextset():
                pass
        return Rows(rows)

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        messages = json.dumps([{"topic": topic} for topic in topics])
        statement = (
            "set nocount on; declare @queues nvarchar(max);"
            " exec rowq.InternalBoundQueues %s, @queues output; select @queues"
        )
        [(queues,)] = self.execute(connection, statement, [messages]).fetchall()
        found = [
            (topics[position - 1], str(queue["queue_name"]))
            for queue in json.loads(queues)
            for position in queue["places"]
        ]
        assert len(set(found)) == len(found)
        return set(found)

    def make_table(self, connection: Connection, name: str, columns: str) -> None:
        self.execute(connection, f"if object_id(N'{name}') is null create table {name} ({columns})")

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        self.execute(connection, f"set transaction isolation level {isolation}")
        self.execute(connection, "begin transaction")

    def commit(self, connection: Connection) -> None:
        self.execute(connection, "commit transaction")

    def rollback(self, connection: Connection) -> None:
        self.execute(connection, "if @@trancount > 0 rollback transaction")

    def savepoint(self, connection: Connection, name: str) -> None:
        self.execute(connection, f"save transaction {name}")

    def back_to(self, connection: Connection, name: str) -> None:
        self.execute(connection, f"rollback transaction {name}")

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        self.execute(connection, f"set lock_timeout {int(seconds * 1000)}")

    def lock_table(self, connection: Connection, table: str) -> None:
        """Lock a table's schema: other locks do not stop readers of row versions."""
        self.begin(connection)
        self.execute(connection, f"alter table rowq.{table} set (lock_escalation = disable)")


def _only_rows(cursor: Any, routine: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return columns and rows of the only result set; messages may precede it."""
    columns: list[str] = []
    rows: list[tuple[Any, ...]] = []
    while True:
        if cursor.description:
            assert not columns, f"{routine} returned two result sets"
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        if not cursor.nextset():
            return columns, rows


DIALECT = SqlserverDialect()
