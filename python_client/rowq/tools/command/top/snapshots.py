"""Looks at the queues by the routines that rowq_monitor may call."""

import time

from rowq.messages import LAST_ID
from rowq.queue import Queue
from rowq.tools.command.top.view import Snapshot, View
from rowq.tools.console.database import server_of
from rowq.tools.throughput import listed_workers

_MOST = 100
"""Claims, and dead messages, of a look: more are not on a screen."""


class Looker:
    """Looks at one database."""

    def __init__(self, queue: Queue, url: str) -> None:
        self._queue = queue
        self._server = server_of(url)

    def look(self, view: View) -> Snapshot:
        """Return what there is of what a view shows; raises what a call raises."""
        queue, name = self._queue, view.entered
        snapshot = Snapshot(
            at=time.monotonic(),
            server=self._server,
            queues=queue.queue_stats(name, max_count=view.max_count),
            workers=listed_workers(queue, name) or (),
            claims=queue.list_claims(name, max_claims=_MOST),
            checks=[check for check in queue.health() if check.status != "ok"],
            dead=queue.list_dead(name, max_messages=_MOST, before_message_id=LAST_ID)
            if name is not None and view.shows_dead
            else (),
        )
        view.remember(snapshot)
        return snapshot
