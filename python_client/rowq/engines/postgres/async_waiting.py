"""dequeue_wait on PostgreSQL: the client is notified of a message, so that the server polls less.

waiting.py is made from this file by make generate.

Nothing notifies of a free place in a limited queue, of a message that is due before maintain
promotes it, or after a rollback. So the client polls as well, after pauses that double.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rowq.engines.base import LONGEST_WAIT_SECONDS, ListeningEngine, Row

_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 1.0


async def dequeue_wait_async(
    engine: ListeningEngine, connection: Any, arguments: Mapping[str, Any]
) -> list[Row]:
    """Dequeue, and while no message is ready, listen for one until `wait_seconds` have passed.

    The routine waits instead if the session cannot listen, as behind a pooler, and refuses a wrong
    `wait_seconds`.
    """
    seconds = arguments["wait_seconds"]
    if not seconds or not 0 < seconds <= LONGEST_WAIT_SECONDS:
        return await engine.call_async(connection, "dequeue_wait", arguments)
    until = time.monotonic() + seconds
    once = {**arguments, "wait_seconds": 0.0}
    rows = await engine.call_async(connection, "dequeue_wait", once)
    if rows[0][0]:
        return rows
    name = {"queue_name": arguments["queue_name"]}
    if not await _listens(engine, connection, name):
        rest = {**arguments, "wait_seconds": max(until - time.monotonic(), 0.0)}
        return await engine.call_async(connection, "dequeue_wait", rest)
    try:
        # A message that was enqueued before the session listened has no notification.
        rows = await engine.call_async(connection, "dequeue_wait", once)
        pause = _FIRST_PAUSE_SECONDS
        while not rows[0][0] and (left := until - time.monotonic()) > 0:
            async for _ in connection.notifies(timeout=min(left, pause), stop_after=1):
                pass
            rows = await engine.call_async(connection, "dequeue_wait", once)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    except Exception:
        await _unlisten(engine, connection, name)
        raise
    await _unlisten(engine, connection, name)
    return rows


async def _listens(engine: ListeningEngine, connection: Any, name: Mapping[str, Any]) -> bool:
    """Listen to a queue, and return whether this session can be notified."""
    if not await engine.is_direct_async(connection):
        return False
    ((_, outcome, _),) = await engine.call_async(connection, "listen", name)
    return bool(outcome == "listening")


async def _unlisten(engine: ListeningEngine, connection: Any, name: Mapping[str, Any]) -> None:
    """Stop listening, unless the connection is lost or the queue dropped.

    It raises no error: messages that are already leased must reach the caller.
    """
    with suppress(Exception):
        await engine.call_async(connection, "unlisten", name)
