"""psycopg 3, imported when it is first needed: its errors, savepoints and uncommitted enqueues.

An error of PostgreSQL leaves a transaction that takes nothing more until it is rolled back, to a
savepoint at least. asyncpg's errors are read here, too.
"""

import os
import re
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import ModuleType
from typing import Any

from rowq.engines.sockets import has_input
from rowq.engines.uncommitted import Watch, before, watch_of
from rowq.errors import REFUSALS, DriverMissing, InvalidArgument, Refused, WrongTransactionState

_COMMITS_INSIDE_TRANSACTION = "2D000"
_DENIED = "42501"
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
CONNECTION_GONE = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"}
READ_ONLY = "25006"
UNDONE = {"40001", "40P01"}
SHORTAGE_CLASSES = {"08", "40", "53", "55", "57", "58", "72"}
# libpq says this of a call that it has not begun to send.
NOT_SENT = "another command is already in progress"

_SET = "savepoint rowq_call"
_RELEASE = "release savepoint rowq_call"
_BACK = ("rollback to savepoint rowq_call", _RELEASE)

# What is closed is not kept waiting for longer, so that an end of the network is none.
_ANSWER_SECONDS = 1.0
# A transaction in which something was enqueued has an id.
_AGE = (
    b"select extract(epoch from"
    b" pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.transaction_timestamp())"
    b" where pg_catalog.pg_current_xact_id_if_assigned() is not null"
)


def load_driver() -> ModuleType:
    """Return psycopg; raises DriverMissing with what to install."""
    try:
        import psycopg
    except ImportError as error:
        hint = "PostgreSQL needs psycopg: pip install 'rowq[postgres]'"
        raise DriverMissing(hint) from error
    return psycopg


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal that an error stands for, or None."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidArgument(f"a text does not fit {error.encoding}: {error.reason}")
    sqlstate = sqlstate_of(error)
    if sqlstate == _COMMITS_INSIDE_TRANSACTION:
        return WrongTransactionState("a routine that commits was called inside a transaction")
    if refused := REFUSALS.get(sqlstate):
        return refused(text_of(error))
    return None


def sqlstate_of(error: Exception) -> str:
    """Return the SQLSTATE of an error, "" where it has none."""
    return getattr(error, "sqlstate", None) or ""


def text_of(error: Any) -> str:
    """Return the server's own words, without hint and position."""
    # asyncpg has on the error itself what psycopg has in its diagnosis.
    words = error.diag.message_primary if hasattr(error, "diag") else error.message
    return words or str(error)


def is_denied(error: Any) -> bool:
    """Whether the caller may not call a routine: an error inside of one has a context."""
    return sqlstate_of(error) == _DENIED and not getattr(error, "diag", error).context


def quoted(name: str) -> str:
    """Return a role's name as it is written in SQL."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def ends_session(error: Any) -> bool:
    """Whether the server said that it ends the session, whatever the reason."""
    return error.diag.severity_nonlocalized in {"FATAL", "PANIC"}


@contextmanager
def savepoint(connection: Any) -> Iterator[None]:
    """Undo a block that raises; the driver begins the transaction if none is open."""
    connection.execute(_SET)
    try:
        yield
    except BaseException:
        # The connection may be gone, and then the first error is the one to be told.
        with suppress(load_driver().Error):
            for statement in _BACK:
                connection.execute(statement)
        raise
    connection.execute(_RELEASE)


@asynccontextmanager
async def savepoint_async(
    connection: Any, errors: tuple[type[Exception], ...]
) -> AsyncIterator[None]:
    """As savepoint, on an asynchronous connection whose driver raises these `errors`."""
    await connection.execute(_SET)
    try:
        yield
    except BaseException:
        with suppress(*errors):
            for statement in _BACK:
                await connection.execute(statement)
        raise
    await connection.execute(_RELEASE)


def watch(connection: Any, place: str) -> None:
    """Have a warning given when a connection of psycopg's is closed, or collected, uncommitted."""
    if (found := watch_of(connection, _wrap)) is None:
        return
    pgconn, noted_at, process = connection.pgconn, time.monotonic(), os.getpid()

    def is_open() -> bool:
        seconds = time.monotonic() - noted_at
        return os.getpid() == process and _age_of(pgconn) >= seconds

    found.note(place, is_open)


def _wrap(connection: Any, found: Watch) -> None:
    before(connection, "close", found.check)
    weakref.finalize(connection, found.check)


def _age_of(pgconn: Any) -> float:
    """Return for how many seconds a transaction that writes has been open, below 0 for none.

    One that is younger than the call is another one, so that the call's was committed, or rolled
    back on purpose.
    """
    psycopg = load_driver()
    if (
        pgconn.status != psycopg.pq.ConnStatus.OK
        or pgconn.transaction_status != psycopg.pq.TransactionStatus.INTRANS
        or pgconn.pipeline_status
    ):
        return -1.0
    try:
        return _asked_age(pgconn)
    except (psycopg.Error, OSError):  # The connection is lost, and its transaction with it.
        return -1.0


def _asked_age(pgconn: Any) -> float:
    pgconn.send_query(_AGE)
    pgconn.flush()
    until = time.monotonic() + _ANSWER_SECONDS
    while pgconn.is_busy() and has_input(pgconn.socket, max(until - time.monotonic(), 0.0)):
        pgconn.consume_input()
    if pgconn.is_busy():
        return -1.0
    result = pgconn.get_result()
    return float(result.get_value(0, 0)) if result.ntuples else -1.0
