"""cancel_many, call by call until the end."""

from collections.abc import Callable
from typing import Any


def cancel_all(cancel_many: Callable[..., Any], **filters: Any) -> int:
    """Cancel what matches; return how many messages that were.

    A call looks at a thousand messages, and on MariaDB and MySQL those of other queues count.
    """
    cancelled, after = 0, 0
    while True:
        row = cancel_many(after_message_id=after, **filters)
        cancelled += int(row.cancelled)
        if row.after_message_id is None:
            return cancelled
        assert row.after_message_id > after
        after = row.after_message_id
