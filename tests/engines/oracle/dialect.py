"""The dialect of Oracle: calls, errors, transactions."""

import math
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC
from typing import Any

import oracledb

from rowq.contract import Parameter, Routine, load_contract
from tests.engines.oracle.catalog import OracleCatalog, type_of
from tests.engines.oracle.session import number_of, spelled
from tests.engines.oracle.tables import OracleTables
from tests.engines.values import KINDS, is_finite, read
from tests.helpers.json_text import json_text
from tests.helpers.rows import Rows

Connection = Any

# The longest text bind, and the longest varchar2 of PL/SQL.
_LONGEST = 32_767
_LARGEST_NUMBER, _SMALLEST_NUMBER = 1e125, 1e-129
_STACK = re.compile(r"\n(?:ORA-\d{5}: |Help: ).*", re.DOTALL)
_ROWS_AT_A_TIME = 1000


class OracleDialect(OracleCatalog, OracleTables):
    """Oracle through python-oracledb, connections in autocommit."""

    database_error: type[Exception] = oracledb.Error

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        with closing(connection.cursor()) as rows:
            rows.arraysize = rows.prefetchrows = _ROWS_AT_A_TIME
            rows.outputtypehandler = _undecoded
            execute_named(connection, routine, arguments, rows)
            columns = [column.name.lower() for column in rows.description]
            found = [tuple(map(_without_lob, row)) for row in rows.fetchall()]
            return columns, read(routine, columns, found, _KINDS)

    def can_pass(self, parameter: Parameter, value: Any) -> bool:
        """Return whether a call can pass this value: no infinite number, no empty varchar2."""
        if isinstance(value, float):
            return value == 0 or _SMALLEST_NUMBER < abs(value) < _LARGEST_NUMBER
        if isinstance(value, str) and type_of(parameter) == "varchar2":
            return 0 < len(value.encode()) <= _LONGEST
        return is_finite(parameter, value)

    def short_text(self, text: str) -> str | None:
        """Return a text that is not a body after a round trip: an empty one is null."""
        return text or None

    def error(self, error: Exception) -> tuple[str, str]:
        number, text = number_of(error), str(error)
        prefix = f"ORA-{number}: RQ"
        if not text.startswith(prefix):
            return str(number), text
        message = _STACK.sub("", text.removeprefix(f"ORA-{number}: "))
        assert message[2:5] == f"{number - 20000}", f"ORA-{number} for {message}"
        return message[:5], message

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Rows:
        with closing(connection.cursor()) as cursor:
            cursor.execute(spelled(statement), list(values))
            return Rows(cursor.fetchall() if cursor.description else [])

    def make_table(self, connection: Connection, name: str, columns: str) -> None:
        query = "select count(*) from user_tables where table_name = upper(%s)"
        if self.execute(connection, query, [name]).fetchone() == (0,):
            self.execute(connection, f"create table {name} ({columns})")

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction and give it an id before its first write."""
        connection.autocommit = False
        level = "read committed" if isolation == "read committed" else "serializable"
        self.execute(connection, f"set transaction isolation level {level}")
        with closing(connection.cursor()) as cursor:
            statement = "begin :id := dbms_transaction.local_transaction_id(true); end;"
            cursor.execute(statement, id=cursor.var(str))

    def commit(self, connection: Connection) -> None:
        connection.commit()
        connection.autocommit = True

    def rollback(self, connection: Connection) -> None:
        connection.rollback()
        connection.autocommit = True

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        connection.call_timeout = seconds * 1000

    def lock_table(self, connection: Connection, table: str) -> None:
        """Lock a rowq table against writers; readers need no lock."""
        self.begin(connection)
        self.execute(connection, f"lock table rowq_{table} in exclusive mode")

    def interrupt(self, connection: Connection, other: Connection) -> None:
        del connection
        other.cancel()

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        """Return the queues bound to topics, from a publish that is rolled back."""
        routine = load_contract().of("oracle")["publish_batch"]
        messages = [{"topic": topic} for topic in topics]
        self.begin(connection)
        try:
            columns, rows = self.call(connection, routine, {"messages": messages})
        finally:
            self.rollback(connection)
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        pairs = [(topics[row["position"] - 1], row["queue_name"]) for row in found]
        assert len(set(pairs)) == len(pairs)
        return set(pairs)

    def begin_prepared(self, connection: Connection, name: str) -> None:
        connection.autocommit = False
        connection.tpc_begin(_branch(connection, name))

    def prepare(self, connection: Connection, name: str) -> None:
        del name
        assert connection.tpc_prepare(), "there was nothing to prepare"

    def commit_prepared(self, connection: Connection, name: str) -> None:
        connection.tpc_commit(_branch(connection, name))

    def allows_prepared(self, connection: Connection) -> bool:
        del connection
        return True


def execute_named(
    connection: Connection, routine: Routine, arguments: Mapping[str, Any], rows: Any
) -> None:
    """Call a routine with arguments by name; the cursor `rows` has its rows."""
    parameters = {parameter.name: parameter for parameter in routine.parameters}
    given = "".join(f"p_{name} => :p_{name}, " for name in arguments)
    with closing(connection.cursor()) as cursor:
        binds = {
            f"p_{name}": _value(connection, parameters[name], value)
            for name, value in arguments.items()
        }
        kinds = {f"p_{name}": _kind(parameters[name], value) for name, value in arguments.items()}
        cursor.setinputsizes(**{name: kind for name, kind in kinds.items() if kind is not None})
        cursor.execute(
            f"begin rowq.{routine.name}({given}p_rows => :p_rows); end;", {**binds, "p_rows": rows}
        )


def _branch(connection: Connection, name: str) -> Any:
    """Return a branch id of at most 64 bytes."""
    return connection.xid(1, uuid.uuid5(uuid.NAMESPACE_OID, name).hex, "rowq")


def _undecoded(cursor: Any, metadata: Any) -> Any:
    """Fetch a LOB as a LOB, even if the driver would decode its JSON."""
    if metadata.type_code in (oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_BLOB):
        return cursor.var(metadata.type_code, arraysize=cursor.arraysize)
    return None


def _value(connection: Connection, parameter: Parameter, value: Any) -> Any:
    """Return an argument as the driver binds it; send a LOB to the server."""
    if value is None:
        return None
    match type_of(parameter):
        case "clob":
            text = value if parameter.type == "text" else json_text(value)
            return connection.createlob(oracledb.DB_TYPE_CLOB, text or None)
        case "blob":
            return connection.createlob(oracledb.DB_TYPE_BLOB, value or None)
        case "timestamp":
            return value.astimezone(UTC).replace(tzinfo=None)
    return int(value) if isinstance(value, bool) else value


def _kind(parameter: Parameter, value: Any) -> Any:
    """Return the driver's type of a bind, None for a LOB."""
    kinds = {
        "number": oracledb.DB_TYPE_NUMBER,
        "timestamp": oracledb.DB_TYPE_TIMESTAMP,
        "varchar2": oracledb.DB_TYPE_VARCHAR,
        "clob": oracledb.DB_TYPE_CLOB if value is None else None,
        "blob": oracledb.DB_TYPE_BLOB if value is None else None,
    }
    return kinds[type_of(parameter)]


def _without_lob(value: Any) -> Any:
    return value.read() if isinstance(value, oracledb.LOB) else value


def _boolean(value: int) -> bool:
    assert value in (0, 1), value
    return bool(value)


def _float(value: float) -> float:
    assert math.isfinite(value), value
    return float(value)


_KINDS = {**KINDS, "boolean": ((int,), _boolean), "float": ((int, float), _float)}


DIALECT = OracleDialect()
