"""Oracle Database through python-oracledb in its thin mode.

Every routine is a procedure of the package rowq; its rows come through a cursor that the client
lends it. LOBs are fetched as values, so a batch costs the call and one fetch.
"""

# ruff: noqa: D102 - the methods are described in base.py

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from rowq.engines.base import Row, SynchronousEngine, WorkTransaction
from rowq.engines.oracle_calls import ROWS, Call, Lob, call_of
from rowq.engines.oracle_url import connection_parameters, owner_of
from rowq.engines.patience import TookTooLongError, within
from rowq.engines.sockets import is_of_the_network
from rowq.errors import CannotConnect, DriverMissing, Refused, refusal_from_text

# The server's numbers: killed, a fatal error, shutdown, not logged on, end of file; and network
# errors.
_CONNECTION_GONE = {
    *(22, 28, 31, 45, 602, 603, 609, 1012, 1033, 1034, 1041, 1043, 1089, 1090, 1092, 2396),
    *(3113, 3114, 3122, 3135, 12153, 12514, 12528, 12537, 12541, 12547, 12570, 12571, 12583, 12757),
    *(27146, 28511, 56600),
}
# Open for reading only, not open, or between the roles of a standby.
_WRONG_SERVER = {16000, 1109, 1219, 16456}
# Deadlock, not serializable: a call that is a transaction of its own is undone whole.
_UNDONE = {60, 8177}
# Busy, a lock that was not granted in time, an old snapshot; a file that cannot be read; too many
# sessions or processes; out of space, memory or archive room; a package that is being replaced.
_SHORTAGES = {
    *(54, 30006, 4020, 4021, 1555, 22924, 376, 1115),
    *(18, 20, 12516, 12519, 12520),
    *(1536, 1652, 1653, 1654, 1658, 1683, 1688, 1691, 30036, 4030, 4031, 257, 19809),
    *(4061, 4065, 4068, 1013),
}
# The driver's own numbers: not connected, connection closed, idle for too long, cannot connect; and
# an answer that makes no sense, after which nobody knows whose answer the next one is.
_DRIVER_GONE = re.compile(r"DPY-(?:1001|4011|4033|500[0-9]|600[0-6])")
# The driver's own number: the call took too long, and was interrupted.
_DRIVER_TIMEOUT = re.compile(r"DPY-4024")
_REFUSAL = re.compile(r"\AORA-20\d{3}: (RQ\d{3} .*?)(?:\nORA-\d{5}: |\nHelp: |\Z)", re.DOTALL)
# Rows of a result that are asked for at a time: more than a usual batch has.
_ROWS_AT_A_TIME = 1000
# How long the server may take to answer before a connection in the middle of a call is closed.
_BREAK_MILLISECONDS = 1000
# After so long without a question the driver is made to ask the server, a round trip.
_IDLE_SECONDS = 1.0
_BRIEFLY_MILLISECONDS = 1000
_savepoints = count(1)


class OracleEngine(SynchronousEngine):
    """Oracle Database 19c and newer."""

    name = "oracle"
    schemes = ("oracle", "oracle+oracledb")
    driver_package = "oracledb"
    product = "Oracle"

    def __init__(self) -> None:
        self._asked_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def connect(self, url: str) -> Any:
        oracledb = _driver()
        parameters = connection_parameters(url)
        owner = owner_of(url)
        try:
            connection = within(
                parameters["tcp_connect_timeout"],
                lambda: oracledb.connect(**parameters, program="rowq"),
                self.close,
            )
            connection.autocommit = True
            if owner:
                connection.current_schema = owner
        except (oracledb.Error, OSError, UnicodeError, TookTooLongError) as error:
            if isinstance(error, OSError) and not is_of_the_network(error):
                raise
            raise CannotConnect(f"Oracle: {error}") from error
        return connection

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        oracledb = _driver()
        call = call_of(routine)
        values = call.values(arguments)
        try:
            with connection.cursor() as cursor, connection.cursor() as rows:
                _prepare(rows, call)
                cursor.setinputsizes(**_kinds(call, values))
                lobs = {name: _sent(connection, one) for name, one in values.items()}
                cursor.execute(call.text, {**lobs, ROWS: rows})
                return call.rows(rows.fetchall())
        except oracledb.Error as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise

    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        # No session of Oracle's has a limit for row locks: the driver interrupts the call.
        connection.call_timeout = _BRIEFLY_MILLISECONDS
        return self.call(connection, routine, arguments)

    def close(self, connection: Any) -> None:
        with suppress(_driver().Error, OSError):
            connection.close()

    def is_async(self, connection: Any) -> bool:
        return isinstance(connection, _driver().AsyncConnection)

    def is_usable(self, connection: Any) -> bool:
        if not connection.is_healthy():
            return False
        # The driver does not look at its socket: a server that has hung up is found by asking.
        now = time.monotonic()
        if now - self._asked_at.get(connection, -_IDLE_SECONDS) < _IDLE_SECONDS:
            return True
        try:
            connection.ping()
        except (_driver().Error, OSError):
            self.close(connection)
            return False
        self._asked_at[connection] = now
        return True

    def break_off(self, connection: Any) -> None:
        # The driver logs off, and would wait for the answer of the call before.
        with suppress(_driver().Error, OSError):
            connection.call_timeout = _BREAK_MILLISECONDS
        self.close(connection)

    def in_transaction(self, connection: Any) -> bool:
        if not connection.is_healthy():
            return False
        return not connection.autocommit or bool(connection.transaction_in_progress)

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        if self.in_transaction(connection):
            return _savepoint(connection, f"rowq_{next(_savepoints)}")
        return _transaction(connection)

    def work_transaction(self, connection: Any) -> WorkTransaction:
        from rowq.engines.work.oracle import OracleWork

        return OracleWork(connection)

    def refusal(self, error: Exception) -> Refused | None:
        found = _REFUSAL.match(str(error))
        return refusal_from_text(found[1]) if found else None

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        if not isinstance(error, _driver().Error):
            # The driver passes most of the network's errors on as the system numbers them.
            return is_of_the_network(error)
        return _number_of(error) in _CONNECTION_GONE or bool(_DRIVER_GONE.search(str(error)))

    def is_wrong_server(self, error: Exception) -> bool:
        return _number_of(error) in _WRONG_SERVER

    def is_undone(self, error: Exception) -> bool:
        return _number_of(error) in _UNDONE

    def is_shortage(self, error: Exception) -> bool:
        if _number_of(error) in _SHORTAGES:
            return True
        return isinstance(error, _driver().Error) and bool(_DRIVER_TIMEOUT.search(str(error)))


def _driver() -> ModuleType:
    try:
        import oracledb
    except ImportError as error:
        hint = "Oracle needs python-oracledb: pip install 'rowq[oracle]'"
        raise DriverMissing(hint) from error
    return oracledb


def _prepare(rows: Any, call: Call) -> None:
    """Let a cursor fetch whole results at a time, LOBs as values and whole numbers exactly."""
    oracledb = _driver()
    kinds = {oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG}
    kinds |= {oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW}
    places = iter(call.columns)

    def fetched(cursor: Any, metadata: Any) -> Any:
        contract_type = next(places, "")
        if contract_type in ("int32", "int64"):
            return cursor.var(int, arraysize=cursor.arraysize)
        kind = kinds.get(metadata.type_code)
        return kind and cursor.var(kind, arraysize=cursor.arraysize)

    rows.arraysize = rows.prefetchrows = _ROWS_AT_A_TIME
    rows.outputtypehandler = fetched


def _kinds(call: Call, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the driver's types of binds that it would guess wrong, or cannot guess from None."""
    oracledb = _driver()
    known = {
        "timestamp": oracledb.DB_TYPE_TIMESTAMP,
        "binary": oracledb.DB_TYPE_RAW,
        **dict.fromkeys(("int32", "int64", "float", "boolean"), oracledb.DB_TYPE_NUMBER),
    }
    kinds = {f"p_{name}": known.get(kind) for name, kind in call.parameters}
    return {
        name: kind for name, kind in kinds.items() if kind and not isinstance(values[name], Lob)
    }


def _sent(connection: Any, value: Any) -> Any:
    """Return a bind as the driver takes it; a LOB is sent to the server here."""
    if not isinstance(value, Lob):
        return value
    oracledb = _driver()
    kind = oracledb.DB_TYPE_BLOB if isinstance(value.data, bytes) else oracledb.DB_TYPE_CLOB
    return connection.createlob(kind, value.data or None)


@contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    connection.autocommit = False
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(_driver().Error):
            connection.rollback()
        raise
    finally:
        connection.autocommit = True


@contextmanager
def _savepoint(connection: Any, name: str) -> Iterator[None]:
    _execute(connection, f"savepoint {name}")
    try:
        yield
    except BaseException:
        with suppress(_driver().Error):
            _execute(connection, f"rollback to savepoint {name}")
        raise


def _execute(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _number_of(error: Exception) -> int | None:
    """Return the server's number of a driver's error; 0 or None where it has none."""
    if not isinstance(error, _driver().Error) or not error.args:
        return None
    number = getattr(error.args[0], "code", None)
    return number if isinstance(number, int) else None


ENGINE = OracleEngine()
