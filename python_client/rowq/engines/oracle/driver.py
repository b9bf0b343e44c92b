"""python-oracledb, imported at first use: its errors, transactions and savepoints."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any

from rowq.errors import DriverMissing, Refused, refusal_from_text

# Session killed or not logged on, fatal server error, shutdown, network failure.
CONNECTION_GONE = {
    *(22, 28, 31, 45, 602, 603, 609, 1012, 1033, 1034, 1041, 1043, 1089, 1090, 1092, 2396),
    *(3113, 3114, 3122, 3135, 12153, 12514, 12528, 12537, 12541, 12547, 12570, 12571, 12583, 12757),
    *(27146, 28511, 56600),
}
# The database is open read-only, not open, or changing its role.
WRONG_SERVER = {16000, 1109, 1219, 16456}
# Deadlock, snapshot conflict.
ROLLED_BACK = {60, 8177}
# Lock timeout, snapshot too old, file unreadable; no more sessions, processes, space, memory or
# archive space; package being replaced.
SHORTAGES = {
    *(54, 30006, 4020, 4021, 1555, 22924, 376, 1115),
    *(18, 20, 12516, 12519, 12520),
    *(1536, 1652, 1653, 1654, 1658, 1683, 1688, 1691, 30036, 4030, 4031, 257, 19809),
    *(4061, 4065, 4068, 1013),
}
# The driver's own numbers: not connected, connection closed, idle timeout, cannot connect; and an
# unreadable answer, after which the connection is out of step.
DRIVER_GONE = re.compile(r"DPY-(?:1001|4011|4033|500[0-9]|600[0-6])")
# The driver interrupted the call after call_timeout.
DRIVER_TIMEOUT = re.compile(r"DPY-4024")
_REFUSAL = re.compile(r"\AORA-20\d{3}: (RQ\d{3} .*?)(?:\nORA-\d{5}: |\nHelp: |\Z)", re.DOTALL)

# The call does not compile: the package does not exist, or the user has no right to it.
_DOES_NOT_COMPILE = 6550
_DENIED = re.compile(r"PLS-00(?:201: identifier|904: insufficient privilege)[^\n]*ROWQ")

_savepoints = count(1)


def load_driver() -> ModuleType:
    """Return python-oracledb; raises DriverMissing with the install command."""
    try:
        import oracledb
    except ImportError as error:
        raise DriverMissing("Oracle needs python-oracledb: pip install 'rowq[oracle]'") from error
    return oracledb


def execute(connection: Any, statement: str) -> None:
    """Run a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal in an error, or None."""
    found = _REFUSAL.match(str(error))
    return refusal_from_text(found[1]) if found else None


def is_denied(error: Exception) -> bool:
    """Whether the caller has no right to rowq's package; Oracle reports it as missing."""
    found = _DENIED.search(str(error))
    return found is not None and number_of(error) == _DOES_NOT_COMPILE


def number_of(error: Exception) -> int | None:
    """Return the server's number of a driver's error, or 0 or None."""
    if not isinstance(error, load_driver().Error) or not error.args:
        return None
    number = getattr(error.args[0], "code", None)
    return number if isinstance(number, int) else None


@contextmanager
def outermost(connection: Any) -> Iterator[None]:
    """Leave autocommit for a block: commit at its end, roll back on an exception."""
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
    """Roll back to the start of the block on an exception."""
    name = f"rowq_{next(_savepoints)}"
    execute(connection, f"savepoint {name}")
    try:
        yield
    except BaseException:
        with suppress(load_driver().Error):
            execute(connection, f"rollback to savepoint {name}")
        raise
