"""Fixtures of the tests of metrics."""

import pytest

from rowq import Queue
from tests.cli.conftest import run, run_without_database
from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue

__all__ = ["made", "make_queue", "run", "run_without_database"]


@pytest.fixture(autouse=True)
def _few_queues(request: pytest.FixtureRequest) -> None:
    """Drop what earlier tests have left: each look is about every queue, and has its time."""
    if {"database_url", "connect", "connection"} & set(request.fixturenames):
        queue = Queue(request.getfixturevalue("connection"))
        for stats in queue.queue_stats():
            queue.drop_queue(stats.queue_name, force=True)
