"""python-oracledb, imported when it is first needed: its errors, transactions and savepoints."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any

from rowq.errors import DriverMissing, Refused, refusal_from_text

# The session was killed or is not logged on, the server met a fatal error or was shut down, or the
# network failed.
CONNECTION_GONE = {
    *(22, 28, 31, 45, 602, 603, 609, 1012, 1033, 1034, 1041, 1043, 1089, 1090, 1092, 2396),
    *(3113, 3114, 3122, 3135, 12153, 12514, 12528, 12537, 12541, 12547, 12570, 12571, 12583, 12757),
    *(27146, 28511, 56600),
}
# The database is open for reading only, not open, or between the roles of a standby.
WRONG_SERVER = {16000, 1109, 1219, 16456}
# After a deadlock or a conflict of snapshots a call that is its own transaction is undone whole.
UNDONE = {60, 8177}
# A lock was not granted in time, a snapshot is too old, a file cannot be read; sessions, processes,
# space, memory or room for the archive are used up; a package is being replaced.
SHORTAGES = {
    *(54, 30006, 4020, 4021, 1555, 22924, 376, 1115),
    *(18, 20, 12516, 12519, 12520),
    *(1536, 1652, 1653, 1654, 1658, 1683, 1688, 1691, 30036, 4030, 4031, 257, 19809),
    *(4061, 4065, 4068, 1013),
}
# The driver's own numbers: not connected, connection closed, idle for too long, cannot connect; and
# an answer that makes no sense, after which nobody knows whose answer the next one is.
DRIVER_GONE = re.compile(r"DPY-(?:1001|4011|4033|500[0-9]|600[0-6])")
# By this number the driver says that the call took too long, and was interrupted.
DRIVER_TIMEOUT = re.compile(r"DPY-4024")
_REFUSAL = re.compile(r"\AORA-20\d{3}: (RQ\d{3} .*?)(?:\nORA-\d{5}: |\nHelp: |\Z)", re.DOTALL)

# A call that does not compile, as its package is not there, or not for this user.
_DOES_NOT_COMPILE = 6550
_DENIED = re.compile(r"PLS-00(?:201: identifier|904: insufficient privilege)[^\n]*ROWQ")

_savepoints = count(1)


def load_driver() -> ModuleType:
    """Return python-oracledb; raises DriverMissing with what to install."""
    try:
        import oracledb
    except ImportError as error:
        hint = "Oracle needs python-oracledb: pip install 'rowq[oracle]'"
        raise DriverMissing(hint) from error
    return oracledb


def execute(connection: Any, statement: str) -> None:
    """Run a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal that an error stands for, or None."""
    found = _REFUSAL.match(str(error))
    return refusal_from_text(found[1]) if found else None


def is_denied(error: Exception) -> bool:
    """Whether rowq's package is out of the caller's reach: Oracle says that it is not there."""
    found = _DENIED.search(str(error))
    return found is not None and number_of(error) == _DOES_NOT_COMPILE


def number_of(error: Exception) -> int | None:
    """Return the server's number of a driver's error; 0 or None where it has none."""
    if not isinstance(error, load_driver().Error) or not error.args:
        return None
    number = getattr(error.args[0], "code", None)
    return number if isinstance(number, int) else None


@contextmanager
def outermost(connection: Any) -> Iterator[None]:
    """Leave autocommit for a block: commit on leaving it, roll back on an exception."""
    connection.autocommit = False
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(load_driver().Error):
            connection.rollback()
        raise
    finally:
        connection.autocommit = True


@contextmanager
def nested(connection: Any) -> Iterator[None]:
    """Roll back to the beginning of a block on an exception."""
    name = f"rowq_{next(_savepoints)}"
    execute(connection, f"savepoint {name}")
    try:
        yield
    except BaseException:
        with suppress(load_driver().Error):
            execute(connection, f"rollback to savepoint {name}")
        raise
