"""A queue and its workers: its name and URL need not be said again with every call.

queue.fill(3)
stats = queue.drain(handler, threads=2)
assert queue.counts() == (0, 0, 0, 0)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection


@dataclass(frozen=True)
class WorkerQueue:
    """A queue of the Python client, whose methods are here without the name of the queue.

    url: the database's, where workers find the queue. client: a queue on a connection of the
    test's own. worker_options: those that every worker has unless told otherwise.
    """

    url: str
    client: rowq.Queue
    name: str
    worker_options: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Return a method of the client's, for this queue."""
        return partial(getattr(self.client, method), self.name)

    def fill(self, count: int) -> list[int]:
        """Enqueue messages with the data 0, 1, 2 and so on, and return their ids."""
        messages = [rowq.NewMessage(data=number) for number in range(count)]
        return [sent.message_id for sent in self.enqueue_batch(messages)]

    def worker(self, handler: Any, **options: Any) -> rowq.Worker:
        """Return a worker for this queue, whose claims have up to ten messages unless told."""
        given = {"batch_size": 10, **self.worker_options, **options}
        return rowq.Worker(self.url, self.name, handler, **given)

    def drain(self, handler: Any, **options: Any) -> rowq.WorkerStats:
        """Run a worker until the queue is empty, and return its counts."""
        return self.worker(handler, drain=True, **options).run()

    def details_of(self, message_id: int) -> rowq.MessageDetails:
        """Return all about a message that rowq knows."""
        details: rowq.MessageDetails | None = self.get_message(message_id)
        assert details is not None
        return details

    def counts(self) -> tuple[int, int, int, int]:
        """Return how many messages are ready, delayed, leased and dead."""
        stats = self.queue_stats()[0]
        return stats.ready, stats.delayed, stats.leased, stats.dead


MakeQueue = Callable[..., WorkerQueue]


@pytest.fixture
def make_queue(database_url: str, connection: Connection, queue_name: str) -> MakeQueue:
    """Return a function that makes the test's queue, with these settings."""

    def make(worker_options: Mapping[str, Any] | None = None, **settings: Any) -> WorkerQueue:
        client = rowq.Queue(connection)
        queue = WorkerQueue(database_url, client, queue_name, worker_options or {})
        queue.create_queue(**settings)
        return queue

    return make
