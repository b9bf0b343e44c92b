"""PyMySQL, imported when it is first needed: its errors, transactions and savepoints."""

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
# Every server takes a statement of so many characters, whatever its max_allowed_packet.
SURELY_FITS = 200_000

# The server's numbers of a shutdown, killed sessions, network errors and an idle session thrown
# out; and the client's: cannot connect, has gone away, lost during query, lost.
CONNECTION_GONE = {
    *(1053, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031),
    *(2002, 2003, 2006, 2013, 2055),
}
ROUTINE_DENIED = 1370
_ACCOUNT = re.compile(r"'[^']*'@'[^']*'")
# The transaction, the server or InnoDB is read-only; a node is out of its cluster; a proxy found no
# server.
WRONG_SERVER = {1792, 1836, 1874, 1047, 9001}
# An option keeps the server from it; the error's text names the option.
PREVENTED_BY_OPTION, READ_ONLY = 1290, re.compile("read.only", re.IGNORECASE)
# These are a deadlock, a conflict of snapshots, and a commit that a cluster refused.
UNDONE = {1213, 1020, 3101}
# A lock was not granted in time; connections, transactions, memory, locks or disk are used up; the
# call was interrupted; a table is being altered.
SHORTAGES = {
    *(1205, 3572),
    *(1040, 1203, 1226, 1637, 1021, 1037, 1038, 1041, 1114, 1135, 1206),
    *(1317, 1969, 3024),
    *(1412, 1615),
}

_savepoints = count(1)


def load_driver() -> ModuleType:
    """Return PyMySQL; raises DriverMissing with what to install."""
    try:
        import pymysql
    except ImportError as error:
        hint = "MySQL and MariaDB need PyMySQL: pip install 'rowq[mysql]'"
        raise DriverMissing(hint) from error
    return pymysql


def drain(cursor: Any) -> list[Row]:
    """Return the rows of the one result set; what comes after them may still be an error."""
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
    """Refuse what the server would answer by closing the connection, in the middle perhaps."""
    cursor.execute("select @@max_allowed_packet")
    ((limit,),) = cursor.fetchall()
    size = len(statement.encode())
    if size >= limit:
        raise InvalidArgument(
            f"the call has {size} bytes, two for each of a binary body, and the server takes"
            f" fewer than its max_allowed_packet, {limit}"
        )


def check_character_set(connection: Any) -> None:
    """Refuse a connection on which some characters would silently become others."""
    if connection.charset != CHARACTER_SET:
        raise InvalidArgument(
            f"the connection's character set is {connection.charset}: open it with"
            f" charset='{CHARACTER_SET}', which holds every character"
        )


def number_of(error: Exception) -> int | None:
    """Return the number of a driver's error; some of the driver's own have none."""
    if not isinstance(error, load_driver().Error):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


def text_of(error: Exception) -> str:
    """Return what an error says, without its number."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def account_of(error: Exception) -> str | None:
    """Return the account that an error names, such as 'web'@'%', or None."""
    found = _ACCOUNT.search(text_of(error))
    return found.group() if found else None


def interruption_of(error: BaseException, handled: BaseException | None) -> OSError | None:
    """Return what a signal's handler raised, where the driver took it for an error of the network.

    The driver raises its own error while it handles that one; `handled` is what the caller was
    handling before.
    """
    cause = error if isinstance(error, OSError) else error.__context__
    if cause is handled or not isinstance(cause, OSError) or is_of_the_network(cause):
        return None
    return cause


@contextmanager
def outermost(connection: Any) -> Iterator[None]:
    """Commit on leaving a block, roll back on an exception."""
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
    """Roll back to the beginning of a block on an exception."""
    name = f"rowq_{next(_savepoints)}"
    execute(connection, f"savepoint {name}")
    try:
        yield
        execute(connection, f"release savepoint {name}")
    except BaseException:
        _back_to(connection, name)
        raise


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, and all of the transaction where the server has ended it already.

    A deadlock ends it, and so does a statement that commits; in_transaction then tells.
    """
    error = load_driver().Error
    try:
        execute(connection, f"rollback to savepoint {savepoint}")
    except error:
        with suppress(error):
            connection.rollback()
