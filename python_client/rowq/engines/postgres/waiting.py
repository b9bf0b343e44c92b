"""dequeue_wait on PostgreSQL: the client is notified of a message, so that the server polls less.

waiting.py is made from this file by make generate.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rowq.engines.base import Engine, Row
from rowq.engines.postgres.driver import SESSION, is_own

# Nothing notifies of a free place in a limited queue, nor of a message that a rollback returned: so
# poll as well, after pauses that double.
_FIRST_PAUSE_SECONDS = 0.25


def dequeue_wait(engine: Engine, connection: Any, arguments: Mapping[str, Any]) -> list[Row]:
    """Dequeue, and while no message is ready, listen for one until `wait_seconds` have passed.

    The routine waits instead if the session cannot listen, as behind a pooler.
    """
    seconds = arguments["wait_seconds"]
    if not seconds or seconds < 0:
        return engine.call(connection, "dequeue_wait", arguments)
    until = time.monotonic() + seconds
    once = {**arguments, "wait_seconds": 0.0}
    rows = engine.call(connection, "dequeue_wait", once)
    if rows[0][0]:
        return rows
    name = {"queue_name": arguments["queue_name"]}
    if not _listens(engine, connection, name):
        rest = {**arguments, "wait_seconds": max(until - time.monotonic(), 0.0)}
        return engine.call(connection, "dequeue_wait", rest)
    try:
        # A message that was enqueued before the session listened has no notification.
        rows = engine.call(connection, "dequeue_wait", once)
        pause = _FIRST_PAUSE_SECONDS
        while not rows[0][0] and (left := until - time.monotonic()) > 0:
            for _ in connection.notifies(timeout=min(left, pause), stop_after=1):
                pass
            rows = engine.call(connection, "dequeue_wait", once)
            pause *= 2
    except Exception:
        # The connection may be lost, or the queue dropped.
        with suppress(Exception):
            engine.call(connection, "unlisten", name)
        raise
    engine.call(connection, "unlisten", name)
    return rows


def _listens(engine: Engine, connection: Any, name: Mapping[str, Any]) -> bool:
    """Listen to a queue, and return whether this session can be notified."""
    cursor = connection.execute(SESSION)
    if not is_own(connection, cursor.fetchone()):
        return False
    ((_, outcome, _),) = engine.call(connection, "listen", name)
    return bool(outcome == "listening")
