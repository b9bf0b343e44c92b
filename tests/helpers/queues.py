"""A queue in one session, whose calls need no name and connection.

    queue.enqueue("hello")
    row = queue.dequeue_one()
    queue.refused("RQ711", "complete", claim_id=None)

As in tests.helpers.calls, every call is checked against the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from tests import stored_times
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers import calls
from tests.helpers.calls import Row
from tests.helpers.dialects import dialect_of

Result = TypeVar("Result")
Connect = Callable[..., Connection]
"""Opens a session, in autocommit by default."""


@dataclass(frozen=True, slots=True)
class CheckedQueue:
    """A queue in one session, whose calls are checked against the contract."""

    connection: Connection
    name: str

    def via(self, connection: Connection) -> CheckedQueue:
        """Return the same queue in another session."""
        return CheckedQueue(connection, self.name)

    def another(self, **settings: Any) -> CheckedQueue:
        """Create another queue in the same session."""
        return new_queue(self.connection, f"{self.name[:80]} other", **settings)

    def call(self, routine: str, **arguments: Any) -> list[Row]:
        """Call a routine for this queue and return its rows."""
        return calls.call(self.connection, routine, queue_name=self.name, **arguments)

    def call_one(self, routine: str, **arguments: Any) -> Row:
        """Call a routine for this queue that must return exactly one row."""
        return calls.call_one(self.connection, routine, queue_name=self.name, **arguments)

    def refused(self, number: str, routine: str, **arguments: Any) -> str:
        """Call a routine for this queue that must fail with this error; return its text."""
        return calls.refused(self.connection, number, routine, queue_name=self.name, **arguments)

    def enqueue(self, *bodies: str, **arguments: Any) -> list[int]:
        """Enqueue one message for each body, with the same arguments, and return their ids."""
        return calls.enqueue(self.connection, self.name, *bodies, **arguments)

    def dequeue(self, batch_size: int = 1, **arguments: Any) -> list[Row]:
        """Dequeue and return the rows."""
        return calls.dequeue(self.connection, self.name, batch_size, **arguments)

    def dequeue_one(self, **arguments: Any) -> Row:
        """Dequeue one message that must be there."""
        return calls.dequeue_one(self.connection, self.name, **arguments)

    def make_dead(self, *bodies: str, **arguments: Any) -> list[int]:
        """Enqueue messages and make them dead; return their ids."""
        return calls.make_dead(self.connection, self.name, *bodies, **arguments)

    def message(self, message_id: int) -> Row:
        """Return the row of get_message for a known message."""
        return self.call_one("get_message", message_id=message_id)

    def finish_one(self, routine: str = "complete", **arguments: Any) -> Row:
        """Dequeue one message and finish it with a routine; return its row."""
        claim_id = self.dequeue_one().claim_id
        return self.call_one(routine, claim_id=claim_id, **arguments)

    def take(self, count: int = 10) -> list[str | None]:
        """Dequeue up to `count` messages and return their bodies."""
        return calls.bodies(self.dequeue(count))

    def finish_next(self, routine: str = "complete", **arguments: Any) -> str:
        """Dequeue one message and finish its claim; return its body."""
        row = self.dequeue_one()
        self.call(routine, claim_id=row.claim_id, **arguments)
        return str(row.body)

    def state_of(self, message_id: int) -> str | None:
        """Return the state of a message, None if it is unknown."""
        return calls.state_of(self.connection, self.name, message_id)

    def counts(self) -> tuple[int, int, int, int]:
        """Return the numbers of ready, delayed, leased and dead messages."""
        return calls.counts(self.connection, self.name)

    def stored(self) -> dict[str, int]:
        """Return the number of this queue's rows in each table."""
        return dialect_of(self.connection).stored(self.connection, self.name)

    def census(self) -> list[tuple[int, str]]:
        """Return every unfinished message and its state, once per row."""
        return dialect_of(self.connection).census(self.connection, self.name)

    def finished(self) -> list[tuple[int, str]]:
        """Return the messages in the archive or on the way to it."""
        return dialect_of(self.connection).finished(self.connection, self.name)

    def held_keys(self) -> int:
        """Return the number of dedup keys in use."""
        return dialect_of(self.connection).held_keys(self.connection, self.name)

    def is_below_floor(self, message_id: int) -> bool:
        """Return whether a floor has passed a message; see Dialect.is_below_floor."""
        return dialect_of(self.connection).is_below_floor(self.connection, self.name, message_id)

    def pass_seconds(self, seconds: int) -> None:
        """Move every stored time of this queue back; see tests/stored_times.py."""
        stored_times.pass_seconds(self.connection, self.name, seconds)

    def tick(self) -> None:
        """Make the next maintain rescan for late commits."""
        stored_times.tick(self.connection, self.name)


def new_queue(connection: Connection, name: str, **settings: Any) -> CheckedQueue:
    """Create a queue with these settings."""
    queue = CheckedQueue(connection, name)
    queue.call("create_queue", **settings)
    return queue


@dataclass(frozen=True, slots=True)
class SecondSession:
    """A second session, whose calls may wait for the first one."""

    server: Server
    first: Connection
    connection: Connection
    pool: ThreadPoolExecutor

    def start_blocked(self, work: Callable[[Connection], Result]) -> Future[Result]:
        """Start work in this session, and wait until the first session blocks it."""
        own = self.server.session_id(self.connection)
        waiting = self.pool.submit(work, self.connection)
        wait_until_blocked(self.server, own, by=self.server.session_id(self.first))
        return waiting


@pytest.fixture
def second(server: Server, connection: Connection, connect: Connect) -> Iterator[SecondSession]:
    """Return a second session."""
    with ThreadPoolExecutor(1) as pool:
        yield SecondSession(server, connection, connect(), pool)


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> CheckedQueue:
    """Return a new queue with the default settings, in the session `connection`."""
    return new_queue(connection, queue_name)


@pytest.fixture
def elsewhere(queue: CheckedQueue, connect: Connect) -> CheckedQueue:
    """Return the same queue in another session."""
    return queue.via(connect())
