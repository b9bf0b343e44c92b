"""One message in a database that was just migrated: it passes through, or stays where it is."""

import rowq


def works(url: str) -> None:
    """Let a message pass through the queue `orders`, which may be there."""
    with rowq.connect(url) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", 1)
        queue.complete("orders", queue.dequeue_fast("orders")[0].claim_id)


def leave_message(url: str, state: str) -> None:
    """Leave a message in a state, ready, delayed, leased or dead, in a new queue `orders`."""
    with rowq.connect(url) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", 1, delay_seconds=1000 if state == "delayed" else None)
        if state in {"leased", "dead"}:
            claim = queue.dequeue_fast("orders")[0].claim_id
            if state == "dead":
                queue.fail_now("orders", claim)
