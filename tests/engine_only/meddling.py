"""Handlers that end a transactional worker's transaction, on PostgreSQL and MySQL.

tests/engine_only/<engine>/test_worker_transaction.py has each engine's statements.
"""

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection
from tests.helpers.worker_queue import MakeQueue

Deed = Callable[[Connection], Any]

each_end = pytest.mark.parametrize("goes_on", [False, True], ids=["raises", "continues"])
swallowing = pytest.mark.parametrize("swallows", [False, True], ids=["raises", "swallows"])


@dataclass(frozen=True)
class Meddled:
    """The handled messages, the statistics, and the rows of message 2."""

    calls: list[int]
    stats: rowq.WorkerStats
    records: int


class MeddledQueue:
    """A queue of 5 messages with one attempt each, and a table of handled messages."""

    def __init__(self, connection: Connection, make_queue: MakeQueue) -> None:
        connection.execute(
            "create table if not exists recorded (queue_name varchar(200), number int)"
        )
        self.queue = make_queue(lease_seconds=60, backoff_base_seconds=0, max_attempts=1)
        self.queue.fill(5)
        self.connection = connection

    def record(self, own: Connection, message: rowq.Message) -> None:
        """Insert a row for a handled message in the worker's transaction."""
        own.cursor().execute(
            "insert into recorded values (%s, %s)", [self.queue.name, message.data]
        )

    def recorded(self) -> Counter[int]:
        """Return the number of committed rows per message."""
        query = "select number from recorded where queue_name = %s"
        rows = self.connection.execute(query, [self.queue.name]).fetchall()
        return Counter(number for (number,) in rows)

    def drain(self, handler: Callable[..., Any]) -> rowq.WorkerStats:
        """Let a transactional worker handle all messages."""
        return self.queue.drain(handler, transactional=True)

    def check_that_it_is_refused(self, deed: Deed, *, swallows: bool) -> None:
        """End the transaction in message 2; check that it is refused and affects no other."""
        calls: list[int] = []

        def handler(message: rowq.Message, own: Connection) -> None:
            calls.append(message.data)
            self.record(own, message)
            if message.data == 2:
                with contextlib.suppress(*[rowq.ForbiddenInHandler] * swallows):
                    deed(own)

        stats = self.drain(handler)
        assert calls == [0, 1, 2, 3, 4]
        assert stats.processed + stats.failed == 5
        assert stats.failed == (not swallows)
        assert self.recorded() == Counter({0, 1, 2, 3, 4} - (set() if swallows else {2}))
        if not swallows:
            (dead,) = self.queue.list_dead()
            assert "ForbiddenInHandler" in str(dead.last_error)

    def check_that_it_is_taken(self, handle: Callable[[Connection, rowq.Message], None]) -> None:
        """Handle every message; check that all are completed, each with one row."""
        assert self.drain(lambda message, own: handle(own, message)).processed == 5
        assert self.recorded() == Counter(range(5))
        assert self.queue.list_dead() == []

    def meddle(self, deed: Deed, *, goes_on: bool, records_again: bool) -> Meddled:
        """End the transaction in message 2 if it cannot be refused; check the other messages."""
        calls: list[int] = []

        def handler(message: rowq.Message, own: Connection) -> None:
            calls.append(message.data)
            self.record(own, message)
            if message.data == 2:
                with contextlib.suppress(*[Exception] * goes_on):
                    deed(own)
                if records_again:
                    with contextlib.suppress(Exception):
                        self.record(own, message)
                if not goes_on:
                    raise ValueError("then it fails")

        stats = self.drain(handler)
        found = self.recorded()
        others = (0, 1, 3, 4)
        assert {number: found[number] for number in others} == dict.fromkeys(others, 1)
        for dead in self.queue.list_dead():
            assert "ended the worker's transaction" in str(dead.last_error)
        return Meddled(calls, stats, found[2])
