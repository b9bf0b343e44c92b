"""MySQL and MariaDB through PyMySQL.

Every routine is a procedure: the text of a call is fixed, values are quoted by the driver, and the
result is one result set before the packet that ends every call. PyMySQL keeps no SQLSTATE, so a
refusal is known by the number that its text begins with.
"""

# ruff: noqa: D102 - the methods are described in base.py

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import count
from types import ModuleType
from typing import Any

from rowq.engines.base import Row, SynchronousEngine, WorkTransaction
from rowq.engines.calls import (
    READERS,
    Readers,
    check_finite,
    encoded,
    inputs_of,
    read_rows,
    readers_of,
)
from rowq.engines.mysql_url import connection_parameters
from rowq.engines.sockets import end_when_silent, has_input, is_of_the_network
from rowq.errors import (
    CannotConnect,
    DriverMissing,
    InvalidArgument,
    Refused,
    refusal_from_text,
)

# Our own connections only; a caller's keeps the isolation that its owner chose.
_READ_COMMITTED = "set session transaction isolation level read committed"
_CHARACTER_SET = "utf8mb4"

# The server's numbers: shutdown, killed sessions, network errors, an idle session thrown out; and
# the client's: cannot connect, has gone away, lost during query, lost.
_CONNECTION_GONE = {
    *(1053, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031),
    *(2002, 2003, 2006, 2013, 2055),
}
# A read-only transaction or server, InnoDB read-only; a node that is out of its cluster; what a
# proxy says that found no server.
_WRONG_SERVER = {1792, 1836, 1874, 1047, 9001}
# An option keeps the server from it: the text names the option.
_PREVENTED_BY_OPTION, _READ_ONLY = 1290, re.compile("read.only", re.IGNORECASE)
# Deadlock; snapshot isolation; a cluster that refused the commit.
_UNDONE = {1213, 1020, 3101}
# Lock wait timeout, nowait; too many connections or transactions, out of memory, locks or disk;
# interrupted; a table that is being altered.
_SHORTAGES = {
    *(1205, 3572),
    *(1040, 1203, 1226, 1637, 1021, 1037, 1038, 1041, 1114, 1135, 1206),
    *(1317, 1969, 3024),
    *(1412, 1615),
}
# Characters of a statement that every server takes, whatever its max_allowed_packet.
_SURELY_FITS = 200_000
_savepoints = count(1)


@dataclass(frozen=True, slots=True)
class _Call:
    """How to call one routine, and how to read what it returns."""

    routine: str
    parameters: tuple[tuple[str, str], ...]
    readers: Readers

    def text(self, values: list[Any]) -> str:
        # Bytes that are no text must not be taken for some.
        marks = ("_binary %s" if isinstance(value, bytes) else "%s" for value in values)
        return f"call rowq.{self.routine}({', '.join(marks)})"

    def values(self, arguments: Mapping[str, Any]) -> list[Any]:
        return [_spell(name, kind, arguments[name]) for name, kind in self.parameters]

    def rows(self, rows: list[Row]) -> list[Row]:
        return read_rows(rows, self.readers)


class MysqlEngine(SynchronousEngine):
    """MySQL 8.0 and newer, MariaDB 10.6 and newer."""

    name = "mysql"
    schemes = ("mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql")
    driver_package = "pymysql"
    product = "MySQL and MariaDB"

    def connect(self, url: str) -> Any:
        pymysql = _driver()
        parameters = connection_parameters(url)
        handled = sys.exception()
        try:
            connection = pymysql.connect(
                **parameters,
                # The driver's connect_timeout ends with the first packet.
                read_timeout=parameters["connect_timeout"],
                charset=_CHARACTER_SET,
                autocommit=True,
                init_command=_READ_COMMITTED,
                program_name="rowq",
            )
        except (pymysql.Error, OSError, RuntimeError, UnicodeError) as error:
            if interruption := _interruption(error, handled):
                raise interruption from None
            raise CannotConnect(f"MySQL: {_text_of(error)}") from error
        connection._read_timeout = None
        end_when_silent(connection._sock.fileno())
        return connection

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        pymysql = _driver()
        call = _call_of(routine)
        values = call.values(arguments)
        _check_character_set(connection)
        handled = sys.exception()
        has_transaction = self.in_transaction(connection)
        try:
            with pymysql.cursors.Cursor(connection) as cursor:
                statement = cursor.mogrify(call.text(values), values)
                if len(statement) > _SURELY_FITS:
                    _check_size(cursor, statement)
                cursor.execute(statement)
                return call.rows(_drain(cursor))
        except pymysql.Error as error:
            if refusal := self.refusal(error):
                raise refusal from error
            if interruption := _interruption(error, handled):
                raise interruption from None
            if not (has_transaction or self.is_connection_lost(error)):
                # No handler of a routine sees that memory or temporary space has run out: its
                # own transaction is still open then, and not the caller's to commit.
                with suppress(pymysql.Error):
                    connection.rollback()
            raise

    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        # MySQL takes no less than a second.
        seconds = 0 if "mariadb" in connection.server_version.lower() else 1
        _execute(connection, f"set session innodb_lock_wait_timeout = {seconds}")
        return self.call(connection, routine, arguments)

    def close(self, connection: Any) -> None:
        if connection.open:
            with suppress(_driver().Error, OSError):
                connection.close()

    def is_async(self, connection: Any) -> bool:  # noqa: ARG002 - the driver has no such one
        return False

    def is_usable(self, connection: Any) -> bool:
        if not connection.open:
            return False
        # An idle server says nothing but farewell, or with TLS something about the session: ask.
        if has_input(connection._sock.fileno()):
            with suppress(_driver().Error, OSError):
                connection.ping(reconnect=False)
                return bool(connection.open)
            self.close(connection)
            return False
        return True

    def is_idle(self, connection: Any) -> bool:
        return self.is_usable(connection) and not self.in_transaction(connection)

    def in_transaction(self, connection: Any) -> bool:
        if not connection.open:
            return False
        status = _driver().constants.SERVER_STATUS.SERVER_STATUS_IN_TRANS
        return not connection.get_autocommit() or bool(connection.server_status & status)

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        if self.in_transaction(connection):
            return _savepoint(connection, f"rowq_{next(_savepoints)}")
        return _transaction(connection)

    def work_transaction(self, connection: Any) -> WorkTransaction:
        from rowq.engines.work.mysql import MysqlWork

        return MysqlWork(connection)

    def refusal(self, error: Exception) -> Refused | None:
        return refusal_from_text(_text_of(error))

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        pymysql = _driver()
        if isinstance(error, pymysql.InterfaceError):
            return True  # the connection was closed already, by an earlier error
        number = _number_of(error)
        out_of_step = isinstance(error, pymysql.InternalError) and number is None
        return number in _CONNECTION_GONE or out_of_step

    def is_wrong_server(self, error: Exception) -> bool:
        number = _number_of(error)
        is_option = number == _PREVENTED_BY_OPTION and _READ_ONLY.search(_text_of(error))
        return number in _WRONG_SERVER or bool(is_option)

    def is_undone(self, error: Exception) -> bool:
        return _number_of(error) in _UNDONE

    def is_shortage(self, error: Exception) -> bool:
        return _number_of(error) in _SHORTAGES


def _driver() -> ModuleType:
    try:
        import pymysql
    except ImportError as error:
        hint = "MySQL and MariaDB need PyMySQL: pip install 'rowq[mysql]'"
        raise DriverMissing(hint) from error
    return pymysql


@cache
def _call_of(routine: str) -> _Call:
    return _Call(routine, inputs_of(routine), readers_of(routine, READERS))


def _drain(cursor: Any) -> list[Row]:
    """Return the rows of the one result set; what comes after them may still be an error."""
    rows: list[Row] = []
    while True:
        if cursor.description:
            rows.extend(cursor.fetchall())
        if not cursor.nextset():
            return rows


def _spell(name: str, kind: str, value: Any) -> Any:
    """Return an argument as the driver quotes it; raises InvalidArgument if it cannot be sent."""
    checked = check_finite(name, kind, value)
    match checked:
        case str():
            encoded(name, checked)
        case datetime():
            return checked.replace(tzinfo=None).isoformat(" ", "microseconds")
        case list():
            return json.dumps(checked)
    return checked


def _check_size(cursor: Any, statement: str) -> None:
    """Refuse what the server would answer by closing the connection, in the middle perhaps."""
    cursor.execute("select @@max_allowed_packet")
    ((limit,),) = cursor.fetchall()
    size = len(statement.encode())
    if size >= limit:
        raise InvalidArgument(
            f"the call has {size} bytes, two for each of a binary body, and the server takes"
            f" fewer than its max_allowed_packet, {limit}"
        )


def _check_character_set(connection: Any) -> None:
    """Refuse a connection on which some characters would silently become others."""
    if connection.charset != _CHARACTER_SET:
        raise InvalidArgument(
            f"the connection's character set is {connection.charset}: open it with"
            f" charset='{_CHARACTER_SET}', which holds every character"
        )


@contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    connection.begin()
    try:
        yield
    except BaseException:
        with suppress(_driver().Error):
            connection.rollback()
        raise
    connection.commit()


@contextmanager
def _savepoint(connection: Any, name: str) -> Iterator[None]:
    _execute(connection, f"savepoint {name}")
    try:
        yield
        _execute(connection, f"release savepoint {name}")
    except BaseException:
        _back_to(connection, name)
        raise


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, and all of the transaction where the server has ended it already.

    A deadlock ends it, and so does a statement that commits; in_transaction then tells.
    """
    error = _driver().Error
    try:
        _execute(connection, f"rollback to savepoint {savepoint}")
    except error:
        with suppress(error):
            connection.rollback()


def _execute(connection: Any, statement: str) -> None:
    with _driver().cursors.Cursor(connection) as cursor:
        cursor.execute(statement)


def _interruption(error: BaseException, handled: BaseException | None) -> OSError | None:
    """Return what a signal's handler raised, where the driver took it for an error of the network.

    The driver raises its own error while it handles that one; `handled` is what the caller was
    handling before.
    """
    cause = error if isinstance(error, OSError) else error.__context__
    if cause is handled or not isinstance(cause, OSError) or is_of_the_network(cause):
        return None
    return cause


def _number_of(error: Exception) -> int | None:
    """Return the number of a driver's error; some of the driver's own have none."""
    if not isinstance(error, _driver().Error):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


def _text_of(error: Exception) -> str:
    return str(error.args[1]) if len(error.args) > 1 else str(error)


ENGINE = MysqlEngine()
