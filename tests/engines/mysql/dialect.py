"""MariaDB and MySQL, as the engine-neutral tests see them: calls, errors, transactions."""

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
        """Call a routine; arguments that are left out are null, which means their default."""
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

    def can_say(self, parameter: Parameter, value: Any) -> bool:
        """Whether a call can have this value: nothing is infinite, and null means the default."""
        if value is None:
            return parameter.default in {None, "null"}
        return is_finite(parameter, value)

    def error(self, error: Exception) -> tuple[str, str]:
        """Return number, such as RQ701 or the engine's own, and text of an error."""
        number, text = error.args[:2]
        if not re.match(r"RQ7\d\d ", text):
            return str(number), text
        state = getattr(error, "sqlstate", None)
        assert state in {None, f"45{text[2:5]}"}, f"{state} for {text}"
        return text[:5], text

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement of the tests' own, with %s for each value; return its cursor."""
        cursor = connection.cursor()
        cursor.execute(statement, values or None)
        return cursor

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction, and leave the session at its level, as limits ask for."""
        cursor = connection.cursor()
        cursor.execute(f"set session transaction isolation level {isolation}")
        cursor.execute("begin")

    def commit(self, connection: Connection) -> None:
        """Commit it."""
        connection.commit()

    def rollback(self, connection: Connection) -> None:
        """Roll it back."""
        connection.rollback()

    def reset(self, connection: Connection) -> None:
        """End an open transaction, and give the session the settings of a new one."""
        super().reset(connection)
        self.execute(connection, "set session transaction isolation level repeatable read")
        self.execute(connection, "set session innodb_lock_wait_timeout = default")

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Let a session wait no longer than this for a row; then a statement of it fails."""
        connection.cursor().execute(f"set session innodb_lock_wait_timeout = {seconds}")

    def hold_table(self, connection: Connection, table: str) -> None:
        """Let nobody else read or write a table of rowq's until give_table."""
        self.execute(connection, f"lock tables rowq.{table} write")

    def give_table(self, connection: Connection) -> None:
        """Let others have it again."""
        self.execute(connection, "unlock tables")

    def interrupt(self, connection: Connection, other: Connection) -> None:
        """End the statement that another session is executing, and not that session."""
        self.execute(connection, f"kill query {other.thread_id()}")

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        """Return topics with the queues that are bound to them, by one call of the helper."""
        messages = json.dumps([{"topic": topic} for topic in topics])
        cursor = connection.cursor()
        cursor.execute("call rowq.internal_bound_queues(%s, @queues)", (messages,))
        cursor.execute("select @queues")
        found = [
            (topics[place - 1], bytes.fromhex(name).decode())
            for _, name, _, places in json.loads(cursor.fetchone()[0])
            for place in places
        ]
        assert len(set(found)) == len(found)
        return set(found)

    def begin_prepared(self, connection: Connection, name: str) -> None:
        """Open a transaction that can be prepared under a name."""
        cursor = connection.cursor()
        cursor.execute("set transaction isolation level read committed")
        cursor.execute("xa start %s", (name[-60:],))

    def prepare(self, connection: Connection, name: str) -> None:
        """Prepare it: from now on it outlives its session, and the server."""
        cursor = connection.cursor()
        cursor.execute("xa end %s", (name[-60:],))
        cursor.execute("xa prepare %s", (name[-60:],))

    def commit_prepared(self, connection: Connection, name: str) -> None:
        """Commit it, in another session."""
        connection.cursor().execute("xa commit %s", (name[-60:],))

    def allows_prepared(self, connection: Connection) -> bool:
        """Whether the server allows such transactions: always."""
        del connection
        return True


_KINDS = {**KINDS, "boolean": ((int,), bool)}


DIALECT = MysqlDialect()
