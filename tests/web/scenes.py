"""Example queues of a shop with problems."""

from typing import Any

import rowq

NO_STOCK = """Traceback (most recent call last):
  File "shop/worker.py", line 41, in handle
    reserve(order)
  File "shop/stock.py", line 17, in reserve
    raise NoStock(order["sku"])
shop.stock.NoStock: sku 4711"""
TIMEOUT = "TimeoutError: payments.example did not answer within 10 seconds"


def shop(queue: rowq.Queue, suffix: str = "") -> dict[str, str]:
    """Create queues with messages in every state; return their names by purpose."""
    words = ("orders", "mails", "invoices", "reports")
    names = {word: f"{word}{suffix}" for word in words}
    for name in names.values():
        queue.create_queue(name, lease_seconds=300, history_days=7, backoff_base_seconds=600)
    orders = names["orders"]
    body = {"id": 17, "customer": "Åse", "lines": [{"sku": 4711, "count": 2}], "paid": True}
    headers = {"traceparent": f"00-{'4bf92f3577b34da6a3ce929d0e0e4736'}-00f067aa0ba902b7-01"}
    fail(queue, orders, [rowq.NewMessage(data=body, message_type="order")] * 12, NO_STOCK)
    more = [rowq.NewMessage(data=body, message_type="order", headers=headers, dedup_key=f"o{n}")
            for n in range(5)]  # fmt: skip
    fail(queue, orders, more, TIMEOUT)
    queue.enqueue_batch(orders, [rowq.NewMessage(data=body, message_type="order")] * 230)
    for worker in ("shop-1", "shop-2"):
        queue.dequeue_fast(orders, 10, worker_name=worker)
        queue.report_worker(
            *(orders, worker),
            worker_name=worker,
            host_name=f"{worker}.example",
            worker_version=f"rowq {rowq.__version__}",
        )
    (retried,) = queue.dequeue_fast(orders, worker_name="shop-1")
    queue.retry_later(orders, retried.claim_id, error=TIMEOUT)
    queue.enqueue(orders, body, delay_seconds=3600)
    queue.enqueue_batch(names["mails"], [{"to": "a@example.com"}] * 40)
    queue.enqueue_batch(names["invoices"], [{"id": n} for n in range(7)])
    queue.pause_queue(names["invoices"])
    queue.create_schedule(names["reports"], "nightly", {"day": 1}, cron="0 3 * * mon-fri")
    queue.bind_topic(names["mails"], "order.*")
    return names


def fail(queue: rowq.Queue, name: str, messages: list[Any], error: str) -> None:
    """Enqueue messages, and make them dead."""
    queue.enqueue_batch(name, messages)
    claimed = queue.dequeue_fast(name, len(messages), worker_name="shop-1")
    queue.fail_now(name, claimed[0].claim_id, error=error)
