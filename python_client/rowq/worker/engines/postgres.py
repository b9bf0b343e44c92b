"""A transactional worker's transaction on PostgreSQL."""

# ruff: noqa: D102 - the methods are described in base.py

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import cache
from itertools import count
from typing import Any

import psycopg

from rowq.engines.postgres.engine import ENGINE
from rowq.engines.sockets import has_input
from rowq.worker.engines.base import (
    AbortedTransaction,
    Notifications,
    TransactionEnded,
    WorkTransaction,
    first_words,
    is_one_of,
    lent,
    refuse_after_end,
    refuse_ending,
    refusing,
)

_ENDING = frozenset(
    {
        *(("commit",), ("end",), ("rollback",), ("abort",), ("begin",)),
        *(("start", "transaction"), ("prepare", "transaction")),
    }
)
_NOT_ENDING = frozenset(
    (*words, "to") for words in (("rollback",), ("rollback", "work"), ("rollback", "transaction"))
)
# A semicolon ends a statement, except in strings, quoted names and comments.
_PIECES = re.compile(
    r"""
    (?<!\w)[eE]'(?:[^'\\]|\\.|'')*'
    | '[^']*'
    | "[^"]*"
    | (?<![\w$])(?P<tag>\$(?:[^\W\d]\w*)?\$) .*? (?P=tag)
    | --[^\n]*
    | /\*.*?\*/
    | (?P<end>;)
    """,
    re.DOTALL | re.VERBOSE,
)
# The transaction's id shows afterwards whether it was committed. A transaction has none before it
# writes, and none is forced: an old id would hold back vacuum.
_MARK = (
    "savepoint rowq_handler; select pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text"
)
_rollbacks = count(1)
# Limits for stored notifications, so that other sessions cannot fill the memory: a queue name has
# at most 100 characters.
_LONGEST_BYTES = 400
_MOST_NAMES = 10_000


class PostgresWork(WorkTransaction):
    """Transaction with one savepoint, always before the next handler's writes."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._number: str | None = None
        self._aborted = AbortedTransaction("", False)

    def begin(self) -> None:
        self._mark("begin isolation level read committed")

    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        own: Any = self._connection
        self._aborted = AbortedTransaction("unknown: the handler caught it", False)
        return lent(
            own,
            claim_id,
            commit=refusing("commit"),
            rollback=refusing("rollback"),
            close=refusing("close"),
            cursor_factory=_reading(own.cursor_factory),
            server_cursor_factory=_reading(own.server_cursor_factory),
            wait=self._waiting(own.wait),
        )

    def keep(self) -> AbortedTransaction | None:
        if self._status() == psycopg.pq.TransactionStatus.INERROR:
            self.undo()
            return self._aborted
        self._refuse_end(kept=True)
        try:
            self._mark("release savepoint rowq_handler")
        except psycopg.errors.InvalidSavepointSpecification:
            # The handler has begun another transaction, which this error has aborted.
            raise self._ended(kept=False) from None
        return None

    def undo(self) -> None:
        self._refuse_end(kept=False)
        # psycopg discards its prepared statements at a rollback only if the text is new.
        statement = f"/* {next(_rollbacks)} */ rollback to savepoint rowq_handler"
        try:
            self._connection.execute(statement)
        except psycopg.errors.InvalidSavepointSpecification:
            raise self._ended(kept=False) from None

    def commit(self) -> None:
        self._connection.execute("commit")

    def abandon(self) -> None:
        with suppress(psycopg.Error):
            if self._status() != psycopg.pq.TransactionStatus.IDLE:
                self._connection.execute("rollback")

    def _status(self) -> psycopg.pq.TransactionStatus:
        return self._connection.info.transaction_status

    def _mark(self, statement: str) -> None:
        """Run a statement, set the savepoint, and read the transaction's id."""
        with psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(f"{statement}; {_MARK}".encode(), prepare=False)
            while cursor.nextset():
                pass
            ((self._number,),) = cursor.fetchall()

    def _refuse_end(self, *, kept: bool) -> None:
        if self._status() == psycopg.pq.TransactionStatus.IDLE:
            raise self._ended(kept=kept)

    def _ended(self, *, kept: bool) -> TransactionEnded:
        """Return the error for a transaction that has ended."""
        text = "a handler ended the worker's transaction"
        self.abandon()
        if self._number is None:
            # Earlier handlers have written nothing. What became of the last handler's writes is
            # unknown.
            return TransactionEnded(text, committed=True, kept=kept)
        with psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute("select pg_catalog.pg_xact_status(%s::pg_catalog.xid8)", [self._number])
            committed = cursor.fetchone() == ("committed",)
        return TransactionEnded(text, committed=committed, kept=committed and kept)

    def _waiting(self, wait: Any) -> Any:
        """Return a method with checks for all statements of the connection."""

        def waiting(generator: Any, *args: Any, **options: Any) -> Any:
            if self._status() == psycopg.pq.TransactionStatus.IDLE:
                generator.close()
                refuse_after_end()
            try:
                return wait(generator, *args, **options)
            except psycopg.Error as error:
                self._aborted = AbortedTransaction(str(error), ENGINE.is_rolled_back(error))
                raise

        return waiting


class PostgresNotifications(Notifications):
    """Notifications of a psycopg connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._names: list[str] = []
        self._received = 0
        connection.add_notify_handler(lambda notify: self._record(notify.payload))

    @property
    def received(self) -> int:
        return self._received

    def sleep(self, seconds: float) -> None:
        has_input(self._connection.fileno(), seconds)

    def wait(self, seconds: float) -> list[str]:
        self._collect()
        if not self._names and has_input(self._connection.fileno(), seconds):
            self._connection.pgconn.consume_input()
            self._collect()
        names, self._names = self._names, []
        return names

    def is_deaf(self, other: Any, seconds: float) -> bool:
        # A separate channel: only the routines know the name of `listen`'s channel.
        token = f"rowq_{uuid.uuid4().hex}"
        self._connection.execute(f"listen {token}")
        other.execute("select pg_catalog.pg_notify(%s, %s)", [token, token])
        until = time.monotonic() + seconds
        is_deaf = True
        while is_deaf and time.monotonic() < until:
            is_deaf = token not in self.wait(max(until - time.monotonic(), 0))
        self._connection.execute(f"unlisten {token}")
        return is_deaf

    def end(self) -> None:
        self._connection.execute("unlisten *")

    def _collect(self) -> None:
        while notify := self._connection.pgconn.notifies():
            self._record(notify.extra[: _LONGEST_BYTES + 1].decode(errors="replace"))

    def _record(self, payload: str) -> None:
        self._received += 1
        if len(payload) <= _LONGEST_BYTES and len(self._names) < _MOST_NAMES:
            self._names.append(payload)


WORK = PostgresWork
NOTIFICATIONS = PostgresNotifications


@cache
def _reading(factory: Any) -> Any:
    """Return a cursor class that refuses statements which would end the transaction."""

    def reading(name: str) -> Any:
        def method(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
            _check(query, cursor.connection)
            return getattr(factory, name)(cursor, query, *args, **options)

        return method

    names = ("execute", "executemany", "stream", "copy")
    methods = {name: reading(name) for name in names if hasattr(factory, name)}
    return type(factory.__name__, (factory,), methods)


def _check(query: Any, connection: Any) -> None:
    """Refuse a query with a statement that would end the transaction."""
    if isinstance(query, psycopg.sql.Composable):
        query = query.as_string(connection)
    text = query.decode("latin-1") if isinstance(query, bytes) else query
    if not isinstance(text, str):
        return
    for start in _beginnings(text):
        words = first_words(text, start, comments_nest=True)
        if is_one_of(words, _ENDING) and not is_one_of(words, _NOT_ENDING):
            refuse_ending(" ".join(words))


def _beginnings(text: str) -> Iterator[int]:
    """Yield the start of each statement."""
    yield 0
    if ";" in text:
        for piece in _PIECES.finditer(text):
            if piece["end"]:
                yield piece.end()
