"""PyMySQL, imported at first use: its errors, transactions and savepoints."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any

from rowq.engines.base import Row
from rowq.engines.sockets import is_of_the_network
from rowq.errors import DriverMissing, InvalidArgument

CHARACTER_SET = "utf8mb4"
# Every server accepts a statement of this many characters, with any max_allowed_packet.
SURELY_FITS = 200_000

# Of the server: shutdown, killed session, network error, idle session closed. Of the client:
# cannot connect, has gone away, lost during query, lost.
CONNECTION_GONE = {
    *(1053, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031),
    *(2002, 2003, 2006, 2013, 2055),
}
ROUTINE_DENIED = 1370
_ACCOUNT = re.compile(r"'[^']*'@'[^']*'")
# The transaction, the server or InnoDB is read-only; a node has left its cluster; a proxy has no
# server.
WRONG_SERVER = {1792, 1836, 1874, 1047, 9001}
# An option of the server prevents the statement; the error's text names it.
PREVENTED_BY_OPTION, READ_ONLY = 1290, re.compile("read.only", re.IGNORECASE)
# Deadlock, snapshot conflict, and a commit that the cluster refused.
ROLLED_BACK = {1213, 1020, 3101}
# Lock timeout; no more connections, transactions, memory, locks or disk; call interrupted; table
# being altered.
SHORTAGES = {
    *(1205, 3572),
    *(1040, 1203, 1226, 1637, 1021, 1037, 1038, 1041, 1114, 1135, 1206),
    *(1317, 1969, 3024),
    *(1412, 1615),
}

_savepoints = count(1)


def load_driver() -> ModuleType:
    """Return PyMySQL; raises DriverMissing with the install command."""
    try:
        import pymysql
    except ImportError as error:
        raise DriverMissing("MySQL and MariaDB need PyMySQL: pip install 'rowq[mysql]'") from error
    return pymysql


def drain(cursor: Any) -> list[Row]:
    """Return the rows of the only result set, and read on: an error may follow it."""
    rows: list[Row] = []
    while True:
        if cursor.description:
            rows.extend(cursor.fetchall())
        if not cursor.nextset():
            return rows


def execute(connection: Any, statement: str) -> None:
    """Run a statement."""
    with load_driver().cursors.Cursor(connection) as cursor:
        cursor.execute(statement)


def check_size(cursor: Any, statement: str) -> None:
    """Refuse a statement for which the server would close the connection."""
    cursor.execute("select @@max_allowed_packet")
    ((limit,),) = cursor.fetchall()
    size = len(statement.encode())
    if size >= limit:
        raise InvalidArgument(
            f"the call must be shorter than max_allowed_packet, {limit} bytes, got {size}"
            " (a binary body counts twice)"
        )


def check_character_set(connection: Any) -> None:
    """Refuse a connection that would silently change some characters."""
    if connection.charset != CHARACTER_SET:
        raise InvalidArgument(
            f"the connection's character set must be {CHARACTER_SET}, got {connection.charset};"
            f" connect with charset='{CHARACTER_SET}'"
        )


def number_of(error: Exception) -> int | None:
    """Return the number of a driver's error, or None."""
    if not isinstance(error, load_driver().Error):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


def text_of(error: Exception) -> str:
    """Return the text of an error without its number."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def account_of(error: Exception) -> str | None:
    """Return the account in an error's text, such as 'web'@'%', or None."""
    found = _ACCOUNT.search(text_of(error))
    return found.group() if found else None


def interruption_of(error: BaseException, handled: BaseException | None) -> OSError | None:
    """Return an exception of a signal handler that the driver took for a network error.

    The driver raises its own error while handling it; `handled` is what the caller handled before.
    """
    cause = error if isinstance(error, OSError) else error.__context__
    if cause is handled or not isinstance(cause, OSError) or is_of_the_network(cause):
        return None
    return cause


@contextmanager
def outermost(connection: Any) -> Iterator[None]:
    """Commit at the end of the block, roll back on an exception."""
    connection.begin()
    try:
        yield
    except BaseException:
        with suppress(load_driver().Error):
            connection.rollback()
        raise
    connection.commit()


@contextmanager
def nested(connection: Any) -> Iterator[None]:
    """Roll back to the start of the block on an exception."""
    name = f"rowq_{next(_savepoints)}"
    execute(connection, f"savepoint {name}")
    try:
        yield
        execute(connection, f"release savepoint {name}")
    except BaseException:
        _back_to(connection, name)
        raise


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint; if the server has already ended the transaction, roll it all back.

    A deadlock ends it, and so does a statement that commits; in_transaction shows this.
    """
    error = load_driver().Error
    try:
        execute(connection, f"rollback to savepoint {savepoint}")
    except error:
        with suppress(error):
            connection.rollback()
