"""Maintenance is neglected for ten minutes, done by many, or killed: nothing is lost."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest

import rowq
from rowq import NewMessage, Queue
from tests.chaos.killable import KillableServer
from tests.concurrency.actors import Actor, Maintainer, Run
from tests.concurrency.checker import check
from tests.concurrency.history import Recorder
from tests.dice import SEED, dice, limit, times
from tests.engines.base import Connection, wait_until
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(limit(120))]

TEN_MINUTES = 600


class Neglected:
    """A queue with work for maintain, and its history.

    delayed, expired: due messages, and messages whose lease has expired. done: finished messages
    that wait for the archiver.
    """

    def __init__(self, connection: Connection, size: int) -> None:
        self.recorder = Recorder()
        self.connection = connection
        self.queue = Queue(connection)
        self.queue.create_queue("orders", archive_days=7, lease_seconds=60)
        self.done = self._send(size)
        self._lease(len(self.done), "complete")
        self.expired = self._send(size)
        for _ in range(10):
            self._lease(len(self.expired) // 10)
        self.delayed = self._send(size, delay_seconds=TEN_MINUTES / 2)
        start = self.recorder.clock()
        pass_seconds(connection, "orders", TEN_MINUTES)
        self.recorder.record(start, "judge", "expire")

    def _send(self, size: int, delay_seconds: float | None = None) -> list[int]:
        messages = [NewMessage(delay_seconds=delay_seconds)] * size
        start = self.recorder.clock()
        sent = self.queue.enqueue_batch("orders", messages)
        self.recorder.record(
            start, "producer", "enqueue", None, [(message.message_id, 5) for message in sent]
        )
        return [message.message_id for message in sent]

    def _lease(self, size: int, finish: str | None = None) -> list[int]:
        """Lease up to `size` messages, and finish them by a routine if set."""
        start = self.recorder.clock()
        messages = self.queue.dequeue_fast("orders", size)
        if not messages:
            return []
        claim_id = messages[0].claim_id
        leased = [(message.message_id, message.attempt) for message in messages]
        self.recorder.record(start, "worker", "dequeue", claim_id, leased, lease_seconds=60)
        if finish is not None:
            start = self.recorder.clock()
            rows = getattr(self.queue, finish)("orders", claim_id)
            outcomes = [(outcome.message_id, outcome.outcome) for outcome in rows]
            self.recorder.record(start, "worker", finish, claim_id, outcomes)
        return [message.message_id for message in messages]

    def judge(self) -> None:
        """Drain the queue, check that it is empty, and run the checker."""
        self.take_census()
        while self._lease(1000, "complete"):
            pass
        self.take_census()
        assert dialect_of(self.connection).census(self.connection, "orders") == []
        assert check(self.recorder.history()) == []

    def take_census(self) -> None:
        """Record the state of every message."""
        start = self.recorder.clock()
        found = dialect_of(self.connection).census(self.connection, "orders")
        self.recorder.record(start, "judge", "census", None, found)

    def stored(self) -> dict[str, int]:
        """Return the number of rows of each table."""
        return dialect_of(self.connection).stored(self.connection, "orders")

    def states(self) -> Counter[str]:
        """Return the number of messages per state."""
        found = dialect_of(self.connection).census(self.connection, "orders")
        return Counter(state for _, state in found)


@pytest.fixture
def session(killable: KillableServer, url: str) -> Iterator[Connection]:
    """Return the owner's session, in autocommit."""
    with closing(killable.server.connect(url)) as connection:
        yield connection


@pytest.mark.promise("P02", "P05", "P09", "P11")
def test_one_maintain_call_catches_up_after_10_minutes(
    session: Connection,
) -> None:
    neglected = Neglected(session, 50)
    done = neglected.queue.maintain("orders")[0]
    assert (done.promoted, done.reaped, done.archived) == (50, 50, 50)
    assert neglected.states() == {"ready": 100}
    # Messages with an expired lease are at the front of their priority; delayed ones follow.
    there = [message.message_id for message in neglected.queue.peek("orders", max_messages=100)]
    assert there == [*neglected.expired, *neglected.delayed]
    assert neglected.stored()["archive"] == 50
    neglected.judge()


@pytest.mark.promise("P02", "P11")
def test_consumers_get_due_messages_without_maintain(session: Connection) -> None:
    neglected = Neglected(session, 50)
    there = neglected._lease(1000, "complete")
    assert there == neglected.delayed
    assert neglected.states() == {"leased": 50}
    assert neglected.queue.maintain("orders")[0].reaped == 50
    neglected.judge()


@pytest.mark.promise("P02", "P04", "P09", "P11")
def test_worker_catches_up_after_10_minutes_without_maintain(url: str, session: Connection) -> None:
    neglected = Neglected(session, 50)
    seen: list[int] = []
    worker = rowq.Worker(
        url, "orders", lambda message: seen.append(message.message_id), drain=True, batch_size=50
    )
    assert worker.run().processed == 100
    assert sorted(seen) == sorted([*neglected.expired, *neglected.delayed])
    wait_until(partial(_archives, neglected), "everything is in the archive")
    assert neglected.states() == {}


def _archives(neglected: Neglected) -> bool:
    neglected.queue.maintain("orders")
    return neglected.stored()["archive"] == 150


@contextmanager
def working(actors: list[Actor], run: Run) -> Iterator[None]:
    """Run sessions inside the block; raise their first error."""
    for actor in actors:
        actor.thread.start()
    try:
        yield
    finally:
        run.stop.set()
        for actor in actors:
            actor.thread.join(60)
    if run.errors:
        raise run.errors[0]


@pytest.mark.promise("P02", "P03", "P09", "P11", "P19")
def test_four_maintainers_that_are_killed_do_everything_once(
    killable: KillableServer, url: str, session: Connection
) -> None:
    drawn = dice("maintainers")
    neglected = Neglected(session, min(1000, times(500)))
    run = Run(killable.server, url, "orders", neglected.recorder)
    actors: list[Actor] = [Maintainer(run, f"maintainer {number}", SEED) for number in range(4)]
    kills = 0
    with working(actors, run):
        while kills < times(20) or neglected.states()["ready"] < 2 * len(neglected.delayed):
            assert not run.errors
            victim = run.alive.get(drawn.choice(actors).name)
            if victim is not None:
                killable.server.kill_session(victim)
                kills += 1
            threading.Event().wait(drawn.uniform(0.0, 0.1))
    while any(result.archived for result in neglected.queue.maintain("orders", 10_000)):
        pass
    assert neglected.stored()["archive"] == len(neglected.done)
    assert neglected.states() == {"ready": 2 * len(neglected.delayed)}
    neglected.judge()
