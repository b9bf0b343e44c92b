"""psycopg 3, imported at first use: its errors, savepoints and uncommitted enqueues.

After an error, a PostgreSQL transaction refuses all statements until a rollback, at least to a
savepoint. asyncpg's errors are also read here.
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
ROLLED_BACK = {"40001", "40P01"}
SHORTAGE_CLASSES = {"08", "40", "53", "55", "57", "58", "72"}
# libpq's error for a call that it has not begun to send.
NOT_SENT = "another command is already in progress"

_SET = "savepoint rowq_call"
_RELEASE = "release savepoint rowq_call"
_BACK = ("rollback to savepoint rowq_call", _RELEASE)

# Longest delay of close() if the network is down.
_ANSWER_SECONDS = 1.0
# A transaction that has enqueued a message has an id.
_AGE = (
    b"select extract(epoch from"
    b" pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.transaction_timestamp())"
    b" where pg_catalog.pg_current_xact_id_if_assigned() is not null"
)


def load_driver() -> ModuleType:
    """Return psycopg; raises DriverMissing with the install command."""
    try:
        import psycopg
    except ImportError as error:
        raise DriverMissing("PostgreSQL needs psycopg: pip install 'rowq[postgres]'") from error
    return psycopg


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal in an error, or None."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidArgument(f"an argument is not valid {error.encoding}: {error.reason}")
    sqlstate = sqlstate_of(error)
    if sqlstate == _COMMITS_INSIDE_TRANSACTION:
        return WrongTransactionState("the routine commits; call it outside a transaction")
    if refused := REFUSALS.get(sqlstate):
        return refused(text_of(error))
    return None


def sqlstate_of(error: Exception) -> str:
    """Return the SQLSTATE of an error, or an empty string."""
    return getattr(error, "sqlstate", None) or ""


def text_of(error: Any) -> str:
    """Return the server's message, without hint and position."""
    # asyncpg has it on the error itself, psycopg in its diagnostics.
    text = error.diag.message_primary if hasattr(error, "diag") else error.message
    return text or str(error)


def is_denied(error: Any) -> bool:
    """Whether the caller may not call a routine; an error inside a routine has a context."""
    return sqlstate_of(error) == _DENIED and not getattr(error, "diag", error).context


def quoted(name: str) -> str:
    """Return a role's name as an SQL identifier."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def ends_session(error: Any) -> bool:
    """Whether the server ended the session with this error."""
    return error.diag.severity_nonlocalized in {"FATAL", "PANIC"}


@contextmanager
def savepoint(connection: Any) -> Iterator[None]:
    """Roll back a block that raises; the driver begins a transaction if none is open."""
    connection.execute(_SET)
    try:
        yield
    except BaseException:
        # If the connection is lost, the first error is the one to raise.
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


def watch(connection: Any, target: str) -> None:
    """Warn if a psycopg connection is closed or collected uncommitted."""
    if (found := watch_of(connection, _wrap)) is None:
        return
    pgconn, called_at, process = connection.pgconn, time.monotonic(), os.getpid()

    def is_open() -> bool:
        seconds = time.monotonic() - called_at
        return os.getpid() == process and _age_of(pgconn) >= seconds

    found.record(target, is_open)


def _wrap(connection: Any, found: Watch) -> None:
    before(connection, "close", found.check)
    weakref.finalize(connection, found.check)


def _age_of(pgconn: Any) -> float:
    """Return the age in seconds of the open transaction that writes, negative if there is none.

    If it is younger than the call, the call's own transaction has ended.
    """
    psycopg = load_driver()
    if (
        pgconn.status != psycopg.pq.ConnStatus.OK
        or pgconn.transaction_status != psycopg.pq.TransactionStatus.INTRANS
        or pgconn.pipeline_status
    ):
        return -1.0
    try:
        return _query_age(pgconn)
    except (psycopg.Error, OSError):  # The connection is lost, and its transaction with it.
        return -1.0


def _query_age(pgconn: Any) -> float:
    pgconn.send_query(_AGE)
    pgconn.flush()
    until = time.monotonic() + _ANSWER_SECONDS
    while pgconn.is_busy() and has_input(pgconn.socket, max(until - time.monotonic(), 0.0)):
        pgconn.consume_input()
    if pgconn.is_busy():
        return -1.0
    result = pgconn.get_result()
    return float(result.get_value(0, 0)) if result.ntuples else -1.0
