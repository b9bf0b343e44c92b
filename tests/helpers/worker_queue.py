"""A queue and its workers, whose calls need no name and URL.

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
    """A queue of the Python client, with its methods bound to the queue's name.

    url: the database's. client: a queue on the test's connection. worker_options: the default
    options of workers.
    """

    url: str
    client: rowq.Queue
    name: str
    worker_options: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Return a method of the client for this queue."""
        return partial(getattr(self.client, method), self.name)

    def fill(self, count: int) -> list[int]:
        """Enqueue messages with the data 0, 1, 2 and so on, and return their ids."""
        messages = [rowq.NewMessage(data=number) for number in range(count)]
        return [sent.message_id for sent in self.enqueue_batch(messages)]

    def worker(self, handler: Any, **options: Any) -> rowq.Worker:
        """Return a worker for this queue, with a batch size of 10 by default."""
        settings = {"batch_size": 10, **self.worker_options, **options}
        return rowq.Worker(self.url, self.name, handler, **settings)

    def drain(self, handler: Any, **options: Any) -> rowq.WorkerStats:
        """Run a worker until the queue is empty, and return its counts."""
        return self.worker(handler, drain=True, **options).run()

    def details_of(self, message_id: int) -> rowq.MessageDetails:
        """Return the details of a known message."""
        details: rowq.MessageDetails | None = self.get_message(message_id)
        assert details is not None
        return details

    def counts(self) -> tuple[int, int, int, int]:
        """Return the numbers of ready, delayed, leased and dead messages."""
        stats = self.queue_stats()[0]
        return stats.ready, stats.delayed, stats.leased, stats.dead


MakeQueue = Callable[..., WorkerQueue]


@pytest.fixture
def make_queue(database_url: str, connection: Connection, queue_name: str) -> MakeQueue:
    """Return a function that creates the test's queue with settings."""

    def make(worker_options: Mapping[str, Any] | None = None, **settings: Any) -> WorkerQueue:
        client = rowq.Queue(connection)
        queue = WorkerQueue(database_url, client, queue_name, worker_options or {})
        queue.create_queue(**settings)
        return queue

    return make
