"""A worker of the test's own process, in a thread beside the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import rowq


@contextmanager
def running(worker: rowq.Worker) -> Iterator[None]:
    """Run a worker as long as the block; it must not have failed, and must end when it is told."""
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert worker._context.failure is None
