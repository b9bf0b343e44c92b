"""Sessions that alter messages beside workers: each message is delivered as it was altered last."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import rowq
from tests.dice import dice, limit, times
from tests.engines.base import Connection, Server
from tests.helpers.dialects import dialect_of
from tests.interleavings.sessions import Session

pytestmark = [
    pytest.mark.requires("cancel", "groups", "predecessors"),
    pytest.mark.timeout(limit(300)),
    pytest.mark.slow("many sessions for seconds"),
]

GROUPS = 4
LONGEST = 60.0
"""Seconds after which messages that have not come count as lost."""


@dataclass(frozen=True)
class Change:
    """A committed alter: when it began and had committed, and the body it wrote."""

    began: float
    ended: float
    body: str


@dataclass
class Traffic:
    """Altering sessions, workers and a maintainer of one queue."""

    server: Server
    url: str
    name: str
    sent: list[int]
    stop: threading.Event = field(default_factory=threading.Event)
    changes: defaultdict[int, list[Change]] = field(default_factory=lambda: defaultdict(list))
    taken: list[tuple[int, str, float]] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Run them until every message has ended; raise their first error."""
        acts = [self._alter, self._alter, self._work, self._work, self._maintain]
        threads = [
            threading.Thread(target=self._live, args=(act, number))
            for number, act in enumerate(acts)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.faults, self.faults

    def _live(self, act: Callable[[Session, random.Random], None], number: int) -> None:
        drawn = dice("altered", number)
        session = Session(self.server, self.server.connect(self.url))
        try:
            end = time.monotonic() + LONGEST
            while not self.stop.is_set() and not self.faults:
                assert time.monotonic() < end, f"only {len(self.taken)} came"
                act(session, drawn)
        except BaseException as error:
            self.faults.append(error)
        finally:
            session.close()

    def _alter(self, session: Session, drawn: random.Random) -> None:
        message_id, began = drawn.choice(self.sent), time.monotonic()
        body = f"{threading.get_ident()} {began}"
        priority = drawn.choice([None, drawn.randrange(10)])
        delay = drawn.choice([None, drawn.random() / 4])
        session.begin()
        row = session.queue.alter_message(
            self.name, message_id, text=body, priority=priority, delay_seconds=delay
        )
        ending = drawn.choice(["rollback", "commit", "commit", "commit"])
        session.end(ending)
        if row.outcome == "altered" and ending == "commit":
            self.changes[message_id].append(Change(began, time.monotonic(), body))

    def _work(self, session: Session, drawn: random.Random) -> None:
        queue = session.queue
        began = time.monotonic()
        for message in queue.dequeue_fast(self.name, drawn.choice([1, 3])):
            if drawn.random() < 0.3:
                queue.retry_later(self.name, message.claim_id, [message.message_id])
                continue
            [ended] = queue.complete(self.name, message.claim_id, [message.message_id])
            assert ended.outcome == "completed"
            self.taken.append((message.message_id, str(message.body), began))
        if len(self.taken) == len(self.sent):
            self.stop.set()

    def _maintain(self, session: Session, _: random.Random) -> None:
        session.queue.maintain(self.name)
        time.sleep(0.05)


@pytest.mark.promise("P02", "P04", "P22", "P24", "P25", "P39")
def test_altered_messages_are_delivered_once_as_altered(
    server: Server, connection: Connection, database_url: str, queue_name: str
) -> None:
    queue, drawn, sent = rowq.Queue(connection), dice("altered messages", 0), list[int]()
    queue.create_queue(queue_name, max_attempts=0, backoff_base_seconds=0.02, backoff_jitter=0)
    for _ in range(times(150)):
        kind = drawn.randrange(4)
        enqueued = queue.enqueue(
            queue_name,
            text="old",
            group_key=f"g{drawn.randrange(GROUPS)}" if kind == 0 else None,
            predecessor_ids=[drawn.choice(sent)] if kind == 1 and sent else None,
            delay_seconds=drawn.random() if kind == 2 else None,
        )
        sent.append(enqueued.message_id)
    traffic = Traffic(server, database_url, queue_name, sent)
    traffic.run()
    assert sorted(message_id for message_id, _, _ in traffic.taken) == sent
    for message_id, body, began in traffic.taken:
        changes = traffic.changes[message_id]
        newest = max((change.began for change in changes if change.ended < began), default=0.0)
        may_be = {change.body for change in changes if change.ended >= newest} or {"old"}
        assert body in may_be | ({"old"} if not newest else set())
    queue.maintain(queue_name)
    stored = dialect_of(connection).stored(connection, queue_name)
    assert not any(stored[table] for table in stored if table not in {"deferred", "expiry"})
