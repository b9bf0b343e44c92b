"""Orders enqueue messages, and messages create notifications."""

from django.test import Client
from shop.models import Notification, Order
from shop.tasks import notify

import rowq
from rowq.contrib.testing import assert_enqueued, drain


def post(customer: str, total: str) -> int:
    order = {"customer": customer, "total": total}
    return int(Client().post("/orders", order, content_type="application/json").status_code)


def test_an_order_is_there_with_its_message(rowq_queue: rowq.Queue) -> None:
    assert post("Ann", "11.77") == 201
    data = {"order_id": Order.objects.get().pk, "customer": "Ann"}
    assert_enqueued(rowq_queue, "notifications", "order_placed", data=data, count=1)


def test_a_refused_order_leaves_no_message(rowq_queue: rowq.Queue) -> None:
    assert post("Bob", "10001") == 409
    assert_enqueued(rowq_queue, "notifications", count=0)


def test_a_message_becomes_one_notification(rowq_queue: rowq.Queue) -> None:
    post("Ann", "1")
    (message,) = rowq_queue.peek("notifications")
    rowq_queue.enqueue("notifications", message.data)
    assert drain(rowq_queue, "notifications", notify).processed == 2
    assert [one.text for one in Notification.objects.all()] == ["Thank you, Ann"]
