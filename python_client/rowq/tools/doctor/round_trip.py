"""Sends one message through a queue of its own, which is dropped at the end."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowq.contract import load_contract
from rowq.engines import engine_for_connection, is_driver_error
from rowq.errors import QueueBusy, RowqError
from rowq.queue import Queue
from rowq.tools.doctor.check import Check, Status, line_of
from rowq.tools.rights import may_call

_CALLED = ("create_queue", "enqueue", "dequeue_fast", "complete", "drop_queue")
_PATIENCE_SECONDS = 30.0


def round_trip(connection: Any) -> Iterator[Check]:
    """Yield one check: whether a message is delivered as it was sent, and in which time."""
    routines = load_contract().of(engine_for_connection(connection).name)
    lacks = [name for name in _CALLED if not may_call(connection, routines[name])]
    if lacks:
        yield Check("round trip", Status.UNKNOWN, f"this account may not call {', '.join(lacks)}")
        return
    try:
        yield _sent(Queue(connection))
    except Exception as error:
        if not (isinstance(error, RowqError) or is_driver_error(error)):
            raise
        words = f"{type(error).__name__}: {line_of(error)}"
        yield Check("round trip", Status.FAILED, words)


def _sent(queue: Queue) -> Check:
    body = {"sent by": "rowq doctor", "number": uuid.uuid4().hex}
    with _own_queue(queue) as name:
        started = time.monotonic()
        sent = queue.enqueue(name, body)
        messages = queue.dequeue_fast(name, worker_name="rowq doctor")
        if [(one.message_id, one.data) for one in messages] != [(sent.message_id, body)]:
            return Check("round trip", Status.FAILED, f"sent {sent}, but got {messages!r:.300}")
        done = queue.complete(name, messages[0].claim_id)
        milliseconds = (time.monotonic() - started) * 1000
        if [(one.message_id, one.outcome) for one in done] != [(sent.message_id, "completed")]:
            return Check("round trip", Status.FAILED, f"complete returned {done!r:.300}")
    words = f"a message was sent, delivered and completed in {milliseconds:.1f} ms"
    return Check("round trip", Status.OK, words)


@contextmanager
def _own_queue(queue: Queue) -> Iterator[str]:
    """Create a queue, and drop it at the end with everything in it."""
    name = f"rowq doctor {uuid.uuid4().hex[:12]}"
    queue.create_queue(name)
    try:
        yield name
    finally:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not _is_dropped(queue, name, is_last=time.monotonic() > end):
            time.sleep(0.05)


def _is_dropped(queue: Queue, name: str, *, is_last: bool) -> bool:
    """Drop the queue; return False where calls of others hold it up and another try may follow."""
    try:
        queue.drop_queue(name, force=True)
    except QueueBusy:
        if is_last:
            raise
        return False
    return True
