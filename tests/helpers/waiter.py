"""A session that waits for a message in another thread."""

import threading
import time

from tests.engines.base import Connection
from tests.helpers.calls import call_one
from tests.helpers.dialects import dialect_of


class Waiter(threading.Thread):
    """A session that waits for one message.

    got, error: the received bodies, or the exception. ended_at: the monotonic time of its end.
    """

    def __init__(self, connection: Connection, queue: str, seconds: float) -> None:
        super().__init__(daemon=True)
        self.session = connection
        self._queue, self._seconds = queue, seconds
        self.got: list[str] = []
        self.error: Exception | None = None
        self.ended_at = 0.0
        self.start()

    def run(self) -> None:
        """Wait."""
        try:
            row = call_one(
                self.session, "dequeue_wait", queue_name=self._queue, wait_seconds=self._seconds
            )
            self.got = [message["body"] for message in row.messages or ()]
        except dialect_of(self.session).database_error as error:
            self.error = error
        self.ended_at = time.monotonic()
