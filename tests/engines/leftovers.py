"""Drops the queues that a file of tests has left behind.

Tests share a database, and what looks at all queues of it, as health and maintain do, would take
seconds once there are a thousand.
"""

import contextlib

from rowq import Queue
from tests.engines.base import Server


def drop_queues(server: Server, url: str) -> None:
    """Drop all queues that can be dropped."""
    # What a test has broken or still locks is no fault of the next one, which is only slower.
    with contextlib.suppress(Exception), contextlib.ExitStack() as opened:
        session = server.connect(url, autocommit=True)
        opened.callback(session.close)
        queue = Queue(session)
        for stats in queue.queue_stats(max_count=1):
            with contextlib.suppress(Exception):
                queue.drop_queue(stats.queue_name, force=True)
