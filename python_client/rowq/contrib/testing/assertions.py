"""Assertion about messages that an application has enqueued."""

from collections.abc import Iterator
from typing import Any

from rowq.messages import MessageDetails, PeekedMessage
from rowq.queue import Queue

_MOST_READ = 1000
_SHOWN = 10

Waiting = PeekedMessage | MessageDetails
"""A ready or delayed message."""


def assert_enqueued(
    queue: Queue,
    queue_name: str,
    message_type: str | None = None,
    data: Any = ...,
    count: int | None = None,
) -> list[Waiting]:
    """Assert that messages wait in a queue, ready or delayed; return those that match.

    Args:
        queue: such as rowq_queue or a MemoryQueue. Reading delayed messages needs the role
            rowq_admin.
        queue_name: the queue.
        message_type: only messages of this type; None: of any.
        data: only messages whose data equals this; ...: any, None: without a body.
        count: required number; None: at least one.

    It reads the first 1000 ready and the first 1000 delayed messages, and no blocked ones.

    Raises:
        AssertionError: another number matches; the text lists the messages.
    """
    there = list(_waiting(queue, queue_name))
    found = [
        message
        for message in there
        if message_type in (None, message.message_type) and (data is ... or _data(message) == data)
    ]
    if len(found) == count or (count is None and found):
        return found
    wanted = "at least one message" if count is None else f"{count} messages"
    filters = [f"message_type {message_type!r}"] if message_type is not None else []
    filters += [f"data {data!r}"] if data is not ... else []
    shown = [f"  {_line(message)}" for message in there[:_SHOWN]]
    shown += [f"  ... and {len(there) - _SHOWN} more"] if len(there) > _SHOWN else []
    blocked = queue.queue_stats(queue_name)[0].blocked
    shown += [f"  {blocked} blocked, not read"] if blocked else []
    raise AssertionError(
        f"expected {wanted} in {queue_name}{' with ' if filters else ''}{' and '.join(filters)},"
        f" found {len(found)}; there are:\n" + "\n".join(shown or ["  none"])
    )


def _waiting(queue: Queue, queue_name: str) -> Iterator[Waiting]:
    yield from queue.peek(queue_name, max_messages=_MOST_READ)
    for delayed in queue.list_delayed(queue_name, max_messages=_MOST_READ):
        details = queue.get_message(queue_name, delayed.message_id)
        if details is not None:
            yield details


def _data(message: Waiting) -> Any:
    """Return a message's data, or its text if that is not JSON."""
    try:
        return message.data
    except ValueError:
        return message.body


def _line(message: Waiting) -> str:
    state = "" if isinstance(message, PeekedMessage) else f" ({message.state})"
    return f"{message.message_id}{state}: {message.message_type!r} {_data(message)!r:.200}"
