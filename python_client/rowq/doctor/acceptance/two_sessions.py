"""Two sessions with a queue of their own, and what they are asked for."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self

from rowq.doctor.check import session
from rowq.engines import engine_for_url
from rowq.errors import QueueBusy
from rowq.messages import Message
from rowq.queue import Queue

_PATIENCE = 30.0


class Disagrees(Exception):  # noqa: N818 - it reads as what it says
    """Something is not as the contract has it; the text says what."""


class RolledBack(Exception):  # noqa: N818 - it reads as what it says
    """Ends a transaction that was never to be committed."""


class TwoSessions:
    """Two sessions, in autocommit, and a queue that nobody else uses.

    first, second: what each session calls. queue: the name of the one that both use.
    """

    def __init__(self, url: str) -> None:
        """Connect, and make the queue; raises CannotConnect, and what create_queue raises."""
        self.engine = engine_for_url(url)
        self.queue = f"rowq doctor {uuid.uuid4().hex[:12]}"
        with ExitStack() as sessions:
            self._connections = [sessions.enter_context(session(url)) for _ in range(2)]
            self.first, self.second = (Queue(connection) for connection in self._connections)
            self.create_queue()
            self._sessions = sessions.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Drop the queue with everything in it, and disconnect."""
        with self._sessions:
            self.drop_queue()

    def create_queue(self) -> None:
        """Create the queue."""
        self.first.create_queue(
            self.queue,
            lease_seconds=60,
            max_attempts=3,
            backoff_base_seconds=0,
            backoff_jitter=0,
        )

    def drop_queue(self) -> None:
        """Drop the queue; where others are at work that may take a few tries."""

        def is_dropped() -> bool:
            try:
                self.first.drop_queue(self.queue, force=True)
            except QueueBusy:
                return False
            return True

        until(is_dropped, f"the queue {self.queue!r} can be dropped")

    @contextmanager
    def transaction(self, session: Queue) -> Iterator[None]:
        """Commit on leaving."""
        with self.engine.transaction(self._connection_of(session)):
            yield

    @contextmanager
    def undone(self, session: Queue) -> Iterator[None]:
        """Roll back on leaving."""
        with suppress(RolledBack), self.transaction(session):
            yield
            raise RolledBack

    def enqueue(self, *data: Any, **options: Any) -> list[int]:
        """Enqueue a message for each value, in the first session; return their ids."""
        return [self.first.enqueue(self.queue, value, **options).message_id for value in data]

    def dequeue(self, session: Queue, count: int = 1, **options: Any) -> list[Message]:
        """Dequeue at most so many messages in one of the sessions."""
        return session.dequeue_fast(self.queue, count, worker_name="rowq doctor", **options)

    def counts(self) -> tuple[int, int, int, int]:
        """Return how many messages are ready, delayed, leased and dead, to the second session."""
        found = self.second.queue_stats(self.queue)[0]
        return found.ready, found.delayed, found.leased, found.dead

    def _connection_of(self, session: Queue) -> Any:
        return self._connections[0 if session is self.first else 1]


def expect(what: str, found: Any, wanted: Any) -> None:
    """Raise Disagrees unless what was found is what was wanted."""
    if found != wanted:
        raise Disagrees(f"{what}: {found!r:.300}, and not {wanted!r:.300}")


def refuses(kind: type[Exception], call: Callable[[], Any]) -> None:
    """Raise Disagrees unless a call is refused with this error."""
    try:
        result = call()
    except kind:
        return
    raise Disagrees(f"{result!r:.300} instead of {kind.__name__}")


def until(is_so: Callable[[], bool], what: str) -> None:
    """Ask again and again until it is so; raise Disagrees when that takes half a minute."""
    end = time.monotonic() + _PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise Disagrees(f"not within {_PATIENCE:.0f} s: {what}")
        time.sleep(0.05)
