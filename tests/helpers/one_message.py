"""A message in a newly migrated database."""

import rowq


def works(url: str) -> None:
    """Enqueue and complete a message in the queue `orders`."""
    with rowq.connect(url) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", 1)
        queue.complete("orders", queue.dequeue_fast("orders")[0].claim_id)


def leave_message(url: str, state: str) -> None:
    """Leave a ready, delayed, leased or dead message in a new queue `orders`."""
    with rowq.connect(url) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", 1, delay_seconds=1000 if state == "delayed" else None)
        if state in {"leased", "dead"}:
            claim = queue.dequeue_fast("orders")[0].claim_id
            if state == "dead":
                queue.fail_now("orders", claim)
