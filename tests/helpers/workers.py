"""A worker in a thread of the test's process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import rowq


@contextmanager
def running(worker: rowq.Worker) -> Iterator[rowq.Worker]:
    """Run a worker during the block; it must not fail, and must stop afterwards."""
    failures: list[Exception] = []

    def run() -> None:
        try:
            worker.run()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert not failures
    assert worker._context.failure is None
