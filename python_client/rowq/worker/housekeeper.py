"""Calls maintain about once a second, at once again while there is a backlog."""

import random
import threading

from rowq.messages import Maintained
from rowq.queue import Queue
from rowq.worker.context import Context

_BATCH_SIZE = 1000


class Housekeeper:
    """Runs in a thread of its own, with its own connection, until `end` is called."""

    def __init__(self, context: Context) -> None:
        """Do nothing yet."""
        self._context = context
        self._ended = threading.Event()

    def end(self) -> None:
        """End the thread."""
        self._ended.set()

    def run(self) -> None:
        """Go on until the end; every call is a transaction of its own."""
        name = self._context.settings.queue_name
        with Queue(self._context.session()) as queue:
            while not self._ended.is_set():
                done = self._context.persist(lambda: queue.maintain(name, _BATCH_SIZE))
                if not any(_is_full(one) for one in done):
                    self._ended.wait(self._pause())

    def _pause(self) -> float:
        return self._context.settings.maintain_seconds * random.uniform(0.75, 1.25)  # noqa: S311


def _is_full(done: Maintained) -> bool:
    return max(done.promoted, done.reaped, done.archived, done.purged) >= _BATCH_SIZE
