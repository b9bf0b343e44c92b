"""Handlers of messages."""

from typing import Any

import rowq


def notify(message: rowq.HeldMessage, connection: Any) -> None:
    """Record the notification in the transaction that completes the message."""
    data = message.data
    connection.execute(
        "insert into shop_notification (order_id, text) values (%s, %s)",
        (data["order_id"], f"Thank you, {data['customer']}"),
    )
