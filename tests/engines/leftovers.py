"""Drop the queues that a test file has left: 1000 of them make maintain slow."""

import contextlib

from rowq import Queue
from tests.engines.base import Server


def drop_queues(server: Server, url: str) -> None:
    """Drop all queues, ignoring errors: a failed or locked queue only slows the next tests."""
    with contextlib.suppress(Exception), contextlib.ExitStack() as opened:
        session = server.connect(url, autocommit=True)
        opened.callback(session.close)
        queue = Queue(session)
        for stats in queue.queue_stats(max_count=1):
            with contextlib.suppress(Exception):
                queue.drop_queue(stats.queue_name, force=True)
