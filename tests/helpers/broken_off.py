"""A queue in which every routine has work, for tests that interrupt a call."""

from typing import Any

from tests.helpers.queues import CheckedQueue

FINISHING = ("complete", "retry_later", "release", "fail_now", "extend_lease")
PRODUCING: dict[str, dict[str, Any]] = {
    "enqueue": {"body": "new", "dedup_key": "new"},
    "enqueue_batch": {"messages": [{"body": "new", "dedup_key": "new"}, {"delay_seconds": 9}]},
}
ROUTINES = (
    *PRODUCING,
    *FINISHING,
    *("dequeue_fast", "promote", "reap", "archive", "maintain", "cancel", "reset"),
)


def fill(queue: CheckedQueue) -> dict[str, dict[str, Any]]:
    """Fill every table of a queue with an archive; return the arguments of ROUTINES.

    Routines that are missing there need only the queue's name.
    """
    queue.enqueue("to be dead")
    queue.call("fail_now", claim_id=queue.dequeue_one().claim_id)
    queue.enqueue("finished")
    queue.call("complete", claim_id=queue.dequeue_one().claim_id)
    queue.enqueue("due", delay_seconds=30)
    queue.enqueue("late")
    queue.call_one("dequeue_fast", lease_seconds=10)
    queue.pass_seconds(60)
    [held] = queue.enqueue("held", priority=0, dedup_key="held")
    claim = queue.dequeue_one().claim_id
    [waits] = queue.enqueue("ready")
    dead = [row.message_id for row in queue.call("list_dead")]
    return {
        **PRODUCING,
        **{name: {"claim_id": claim} for name in FINISHING},
        "cancel": {"message_ids": [*dead, held, waits]},
        "reset": {"message_ids": dead},
    }
