"""A group whose last slot is deleted and added again all the time."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import rowq
from tests.dice import limit, times
from tests.engines.base import Connection
from tests.helpers.calls import state_of

pytestmark = [
    pytest.mark.requires("groups"),
    pytest.mark.timeout(limit(600)),
    pytest.mark.slow("thousands of groups that close", on="mariadb"),
]

QUIET_SECONDS = 20
"""Seconds without a message after which one counts as stuck."""


@dataclass
class Traffic:
    """One producer and two workers of one group that is often empty, and a maintainer."""

    url: str
    name: str
    count: int
    group_limit: int
    sent: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    in_work: set[int] = field(default_factory=set)
    faults: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Run them until every message is delivered; raise their first error."""
        acts = [self._produce, self._consume, self._consume, self._maintain]
        threads = [threading.Thread(target=self._live, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.faults, self.faults

    def _live(self, act: Callable[[rowq.Queue], None]) -> None:
        try:
            with rowq.connect(self.url) as queue:
                act(queue)
        except BaseException as error:
            self.faults.append(error)

    def _produce(self, queue: rowq.Queue) -> None:
        while len(self.sent) < self.count and not self.faults:
            if len(self.taken) < len(self.sent):
                time.sleep(0)  # The next one comes when a worker is about to end this one.
                continue
            self.sent.append(queue.enqueue(self.name, 0, group_key="a").message_id)

    def _consume(self, queue: rowq.Queue) -> None:
        last = time.monotonic()
        while len(self.taken) < self.count and not self.faults:
            assert time.monotonic() - last < QUIET_SECONDS, f"only {len(self.taken)} came"
            for message in queue.dequeue_fast(self.name):
                last = time.monotonic()
                self.in_work.add(message.message_id)
                assert len(self.in_work) <= self.group_limit
                self.taken.append(message.message_id)
                self.in_work.remove(message.message_id)
                queue.complete(self.name, message.claim_id)

    def _maintain(self, queue: rowq.Queue) -> None:
        while len(self.taken) < self.count and not self.faults:
            queue.maintain(self.name)
            time.sleep(0.1)


@pytest.mark.slow("many sessions for seconds")
@pytest.mark.pitfall("postgres 23")
@pytest.mark.promise("P21", "P22", "P24")
@pytest.mark.parametrize("group_limit", [1, 2])
def test_messages_enqueued_while_a_group_empties_keep_order(
    connection: Connection, database_url: str, queue_name: str, group_limit: int
) -> None:
    rowq.Queue(connection).create_queue(queue_name, group_limit=group_limit)
    traffic = Traffic(database_url, queue_name, times(1500), group_limit)
    traffic.run()
    assert sorted(traffic.taken) == traffic.sent
    if group_limit == 1:
        assert traffic.taken == traffic.sent
    assert state_of(connection, queue_name, traffic.sent[-1]) is None
