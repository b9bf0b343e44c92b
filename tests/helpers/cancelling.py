"""cancel_many in a loop."""

from collections.abc import Callable
from typing import Any


def cancel_all(cancel_many: Callable[..., Any], **filters: Any) -> int:
    """Cancel all matching messages; return their number.

    A call scans 1000 messages, on MariaDB and MySQL including other queues'.
    """
    cancelled, after = 0, 0
    while True:
        row = cancel_many(after_message_id=after, **filters)
        cancelled += int(row.cancelled)
        if row.after_message_id is None:
            return cancelled
        assert row.after_message_id > after
        after = row.after_message_id
