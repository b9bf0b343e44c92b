"""The dialect of MariaDB and MySQL: calls, errors, transactions."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pymysql

from rowq.contract import Parameter, Routine
from tests.engines.mysql.catalog import MysqlCatalog
from tests.engines.mysql.tables import MysqlTables
from tests.engines.values import KINDS, given, is_finite, read, spelled

Connection = Any


class MysqlDialect(MysqlCatalog, MysqlTables):
    """MariaDB and MySQL through PyMySQL, connections in autocommit."""

    database_error: type[Exception] = pymysql.Error

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        values = [
            spelled(parameter.type, arguments.get(parameter.name)) for parameter in given(routine)
        ]
        marks = ", ".join("_binary %s" if isinstance(value, bytes) else "%s" for value in values)
        with connection.cursor(pymysql.cursors.Cursor) as cursor:
            cursor.execute(f"call rowq.{routine.name}({marks})", values)
            columns = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
            while cursor.nextset():
                assert not cursor.description, f"{routine.name} returned two result sets"
        return columns, read(routine, columns, rows, _KINDS)

    def can_pass(self, parameter: Parameter, value: Any) -> bool:
        """Return whether a call can pass a finite value; null means the default."""
        if value is None:
            return parameter.default in {None, "null"}
        return is_finite(parameter, value)

    def error(self, error: Exception) -> tuple[str, str]:
        number, text = error.args[:2]
        if not re.match(r"RQ7\d\d ", text):
            return str(number), text
        state = getattr(error, "sqlstate", None)
        assert state in {None, f"45{text[2:5]}"}, f"{state} for {text}"
        return text[:5], text

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
        cursor = connection.cursor()
        cursor.execute(statement, values or None)
        return cursor

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction and keep the session at its isolation level, as limits require."""
        cursor = connection.cursor()
        cursor.execute(f"set session transaction isolation level {isolation}")
        cursor.execute("begin")

    def commit(self, connection: Connection) -> None:
        connection.commit()

    def rollback(self, connection: Connection) -> None:
        connection.rollback()

    def reset(self, connection: Connection) -> None:
        super().reset(connection)
        self.execute(connection, "set session transaction isolation level repeatable read")
        self.execute(connection, "set session innodb_lock_wait_timeout = default")

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        connection.cursor().execute(f"set session innodb_lock_wait_timeout = {seconds}")

    def lock_table(self, connection: Connection, table: str) -> None:
        self.execute(connection, f"lock tables rowq.{table} write")

    def unlock_table(self, connection: Connection) -> None:
        self.execute(connection, "unlock tables")

    def interrupt(self, connection: Connection, other: Connection) -> None:
        self.execute(connection, f"kill query {other.thread_id()}")

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        messages = json.dumps([{"topic": topic} for topic in topics])
        cursor = connection.cursor()
        cursor.execute("call rowq.internal_bound_queues(%s, @queues)", (messages,))
        cursor.execute("select @queues")
        found = [
            (topics[position - 1], bytes.fromhex(name).decode())
            for _, name, _, positions in json.loads(cursor.fetchone()[0])
            for position in positions
        ]
        assert len(set(found)) == len(found)
        return set(found)

    def begin_prepared(self, connection: Connection, name: str) -> None:
        cursor = connection.cursor()
        cursor.execute("set transaction isolation level read committed")
        cursor.execute("xa start %s", (name[-60:],))

    def prepare(self, connection: Connection, name: str) -> None:
        cursor = connection.cursor()
        cursor.execute("xa end %s", (name[-60:],))
        cursor.execute("xa prepare %s", (name[-60:],))

    def commit_prepared(self, connection: Connection, name: str) -> None:
        connection.cursor().execute("xa commit %s", (name[-60:],))

    def allows_prepared(self, connection: Connection) -> bool:
        del connection
        return True


_KINDS = {**KINDS, "boolean": ((int,), bool)}


DIALECT = MysqlDialect()
