"""Sessions that a test controls step by step, and every order of their steps.

A call in the test's thread that returns has not waited: the transactions that it could wait for
are still open. A call that must wait is started in the session's thread, and the server is polled
until it reports that the session waits for a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import pytest

from rowq import Queue
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.dialects import dialect_of

T = TypeVar("T")

SECONDS = 20.0
"""The seconds that a step may take when nothing blocks it."""


@dataclass(frozen=True)
class Running(Generic[T]):
    """A call that runs in a session's thread."""

    session: Session
    future: Future[T]

    def waits_for(self, other: Session) -> None:
        """Wait until the server reports that the call waits for a lock of another session."""
        wait_until_blocked(self.session.server, self.session.id, other.id)
        assert not self.future.done()

    def result(self) -> T:
        """Return what the call returned, or raise what it raised."""
        return self.future.result(SECONDS)


class Session:
    """One session of a test.

    queue: calls routines in this session, in the test's thread. connection: the driver's own.
    """

    def __init__(self, server: Server, connection: Connection) -> None:
        self.server = server
        self.connection = connection
        self.id = server.session_id(connection)
        self.queue = Queue(connection)
        self._dialect = dialect_of(connection)
        self.archive_table = self._dialect.archive_table
        self._thread = ThreadPoolExecutor(1)
        self._started: list[Future[Any]] = []

    def begin(self, isolation: str = "read committed") -> Self:
        """Open a transaction; return the session."""
        self._dialect.begin(self.connection, isolation)
        return self

    def commit(self) -> None:
        """Commit the open transaction."""
        self._dialect.commit(self.connection)

    def rollback(self) -> None:
        """Roll the open transaction back."""
        self._dialect.rollback(self.connection)

    def end(self, how: str) -> None:
        """Commit or roll back the open transaction."""
        {"commit": self.commit, "rollback": self.rollback}[how]()

    def savepoint(self, name: str) -> None:
        """Set a savepoint in the open transaction."""
        self._dialect.savepoint(self.connection, name)

    def back_to(self, name: str) -> None:
        """Roll back to a savepoint."""
        self._dialect.back_to(self.connection, name)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement with %s for values; return the cursor."""
        return self._dialect.execute(self.connection, statement, values)

    def start(self, call: Callable[[Queue], T]) -> Running[T]:
        """Start a call in the session's thread, after those that were started before."""
        future = self._thread.submit(call, self.queue)
        self._started.append(future)
        return Running(self, future)

    def close(self) -> None:
        """End the session, even during a call."""
        if not all(future.done() for future in self._started):
            self.server.kill_session(self.id)
        self.connection.close()
        self._thread.shutdown()


@dataclass(frozen=True)
class Step:
    """A named step of a session, for interleave and play."""

    name: str
    session: Session
    call: Callable[[Queue], Any]


def play(steps: Sequence[Step]) -> dict[str, Any]:
    """Run steps in this order and return what each returned, or the exception it raised.

    A step that waits for a lock, and the later steps of its session, do not delay the other
    sessions; so every order of steps can be run.
    """
    started = []
    for step in steps:
        running = step.session.start(step.call)
        started.append((step, running))
        _wait_for_pause(step.session, running)
    return {step.name: _outcome(running) for step, running in started}


def orders(*sequences: str) -> list[str]:
    """Return every way to interleave sequences of step names, each name a word.

    orders("a b", "x") is ["a b x", "a x b", "x a b"].
    """
    return [
        " ".join(order) for order in _merge([tuple(sequence.split()) for sequence in sequences])
    ]


def each_order(first: str, second: str) -> pytest.MarkDecorator:
    """Run a test once for each order of the steps of two transactions, such as "a1 a2 a3".

    The first steps begin the transactions, which no other session sees: orders in which a step of
    the other comes before the second one are slow.
    """
    begun = {" ".join(sequence.split()[:2]) for sequence in (first, second)}
    late = pytest.mark.slow("begins a transaction earlier than another order", ci="mariadb")
    return pytest.mark.parametrize(
        "order",
        [
            pytest.param(order, marks=[] if all(words in order for words in begun) else late)
            for order in orders(first, second)
        ],
    )


def _merge(sequences: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    if not any(sequences):
        yield ()
    for index, sequence in enumerate(sequences):
        if sequence:
            remaining = [*sequences[:index], sequence[1:], *sequences[index + 1 :]]
            yield from ((sequence[0], *others) for others in _merge(remaining))


def _wait_for_pause(session: Session, running: Running[Any]) -> None:
    """Wait until a step is done, or its session waits for a lock."""

    def is_paused() -> bool:
        wait([running.future], 0.02)
        return running.future.done() or session.id in session.server.waiting_sessions()

    wait_until(is_paused, "a step ends or waits for a lock", SECONDS)


def _outcome(running: Running[Any]) -> Any:
    error = running.future.exception(SECONDS)
    return running.future.result() if error is None else error
