"""One dequeue of a worker: what is asked for, and the claim that the answer is."""

import time
from typing import Any

from rowq.engines.base import Row
from rowq.messages import Message
from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context


class Taking:
    """Made just before the call: the lease is reckoned from then on."""

    def __init__(self, context: Context, worker_name: str, lease_seconds: int) -> None:
        """Ask for a batch in the name of `worker_name`, for a lease of `lease_seconds`."""
        self._context = context
        self._lease_seconds = lease_seconds
        self._asked_at = time.monotonic()
        self.arguments: dict[str, Any] = {
            "queue_name": context.settings.queue_name,
            "batch_size": context.settings.batch_size,
            "worker_name": worker_name,
            "lease_seconds": lease_seconds,
        }

    def claim(self, rows: list[Row]) -> LiveClaim | None:
        """Return the claim that dequeue_fast answered with, None for no rows."""
        messages = [Message(*row) for row in rows]
        if not messages:
            return None
        return LiveClaim(self._context, messages, self._asked_at, self._lease_seconds)
