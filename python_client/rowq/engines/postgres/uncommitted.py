"""Whether the transaction in which something was enqueued is open when its connection is closed."""

import os
import time
import weakref
from typing import Any

import psycopg

from rowq.engines.sockets import has_input
from rowq.engines.uncommitted import Watch, before, watch_of

_IN_TRANSACTION = psycopg.pq.TransactionStatus.INTRANS
# What is closed is not kept waiting for longer, so that an end of the network is none.
_ANSWER_SECONDS = 1.0
# A transaction in which something was enqueued has an id.
_AGE = (
    b"select extract(epoch from"
    b" pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.transaction_timestamp())"
    b" where pg_catalog.pg_current_xact_id_if_assigned() is not null"
)


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
    if (
        pgconn.status != psycopg.pq.ConnStatus.OK
        or pgconn.transaction_status != _IN_TRANSACTION
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
