"""Handlers of messages."""

import rowq
from shop.models import Notification


def notify(message: rowq.HeldMessage) -> None:
    """Notify the customer once, because a message may be delivered again after a crash."""
    data = message.data
    Notification.objects.get_or_create(
        order_id=data["order_id"], defaults={"text": f"Thank you, {data['customer']}"}
    )
