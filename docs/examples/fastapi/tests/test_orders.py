"""Orders enqueue messages, and messages create notifications."""

import os
import time

import psycopg
import pytest
from fastapi.testclient import TestClient
from shop.app import create_app
from shop.tasks import notify

import rowq
from rowq.contrib.testing import assert_enqueued, drain


def test_an_order_is_there_with_its_message(client: TestClient, rowq_queue: rowq.Queue) -> None:
    response = client.post("/orders", json={"customer": "Ann", "total": "11.77"})
    data = {"order_id": response.json(), "customer": "Ann"}
    assert_enqueued(rowq_queue, "notifications", "order_placed", data=data, count=1)


def test_a_refused_order_leaves_no_message(client: TestClient, rowq_queue: rowq.Queue) -> None:
    response = client.post("/orders", json={"customer": "Bob", "total": "10001"})
    assert response.status_code == 409
    assert_enqueued(rowq_queue, "notifications", count=0)


def test_a_message_becomes_a_notification(
    rowq_queue: rowq.Queue, rowq_connection: psycopg.Connection
) -> None:
    """Everything runs in one transaction, which is rolled back."""
    order = "insert into shop_order (customer, total) values ('Ann', 1) returning id"
    ((number,),) = rowq_connection.execute(order).fetchall()
    rowq_queue.enqueue("notifications", {"order_id": number, "customer": "Ann"})
    drain(rowq_queue, "notifications", lambda message: notify(message, rowq_connection))
    assert rowq_connection.execute("select text from shop_notification").fetchall() == [
        ("Thank you, Ann",)
    ]


@pytest.mark.usefixtures("client")  # Removes committed rows.
def test_a_worker_runs_beside_the_api() -> None:
    url = os.environ["ROWQ_URL"]
    worker = rowq.Worker(url, "notifications", notify, transactional=True)
    with TestClient(create_app(worker)) as served:
        served.post("/orders", json={"customer": "Ann", "total": "1"})
        until = time.monotonic() + 30
        while not worker.stats.processed and time.monotonic() < until:
            time.sleep(0.01)
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from shop_notification").fetchone() == (1,)
