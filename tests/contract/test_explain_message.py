"""explain_message: one row for each reason why a message is not delivered now."""

from datetime import timedelta

import pytest

from tests.helpers.calls import Row, refused
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.promise("P42")

READY = ["next", "no_worker"]
"""The reasons of a message in a queue without workers."""


def explained(queue: CheckedQueue, message_id: int) -> list[Row]:
    """Return the reasons of a message."""
    return queue.call("explain_message", message_id=message_id)


def reasons(queue: CheckedQueue, message_id: int) -> list[str]:
    """Return the words of the reasons of a message."""
    return [row.reason for row in explained(queue, message_id)]


def test_ready_messages_are_next_or_behind(queue: CheckedQueue) -> None:
    first, second, third = queue.enqueue("a", "b", "c")
    [urgent] = queue.enqueue("d", priority=1)
    assert reasons(queue, urgent) == READY
    assert reasons(queue, first) == reasons(queue, second) == ["behind", "no_worker"]
    assert explained(queue, third)[0].detail == "3 ready messages are before it"
    claim = queue.dequeue_one().claim_id
    assert reasons(queue, first) == ["next"]
    queue.call("release", claim_id=claim)
    assert explained(queue, first)[0].detail == "1 ready message is before it"
    assert reasons(queue, urgent) == READY


def test_message_of_a_seen_worker_waits_for_no_worker(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    queue.call("report_worker", worker_id="w1")
    assert reasons(queue, message_id) == ["next"]
    queue.pass_seconds(61)
    assert reasons(queue, message_id) == READY


def test_paused_queue_is_a_reason_beside_others(queue: CheckedQueue) -> None:
    [ready], [delayed] = queue.enqueue("a"), queue.enqueue("b", delay_seconds=100)
    queue.call("pause_queue")
    assert reasons(queue, ready) == ["paused", "next"]
    assert reasons(queue, delayed) == ["paused", "delayed"]


def test_delayed_message_names_its_time(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", delay_seconds=100)
    [row] = explained(queue, message_id)
    assert (row.reason, row.clears_at) == ("delayed", queue.message(message_id).due_at)
    queue.pass_seconds(102)
    assert reasons(queue, message_id) == ["overdue"]
    queue.pass_seconds(10)
    assert reasons(queue, message_id) == ["overdue", "no_maintain"]
    queue.call("promote")
    assert reasons(queue, message_id) == READY


def test_leased_message_names_its_worker(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    claim = queue.dequeue_one(worker_name="w1").claim_id
    [row] = explained(queue, message_id)
    assert (row.reason, row.claim_id, row.worker_name) == ("leased", claim, "w1")
    assert row.clears_at == queue.message(message_id).lease_until
    queue.pass_seconds(32)
    assert reasons(queue, message_id) == ["lease_expired"]
    queue.pass_seconds(10)
    assert reasons(queue, message_id) == ["lease_expired", "no_maintain"]


def test_message_of_a_group_names_the_message_in_work(queue: CheckedQueue) -> None:
    first, second, third = queue.enqueue("a", "b", "c", group_key="g")
    [row] = explained(queue, second)
    assert (row.reason, row.blocking_id, row.claim_id) == ("group", first, None)
    claim = queue.dequeue_one(worker_name="w1").claim_id
    [row, before] = explained(queue, third)
    assert (row.reason, row.blocking_id, row.claim_id) == ("group", first, claim)
    assert (row.worker_name, row.clears_at) == ("w1", queue.message(first).lease_until)
    assert before.detail == "1 message of its group waits before it"
    queue.call("retry_later", claim_id=claim, delay_seconds=50.0)
    [row] = explained(queue, second)
    assert (row.reason, row.blocking_id) == ("group", first)
    assert row.clears_at == queue.message(first).due_at


def test_message_of_a_group_finds_a_batch_of_other_messages(queue: CheckedQueue) -> None:
    queue.enqueue("x", priority=1)
    [first] = queue.enqueue("a", group_key="g", priority=2)
    [second] = queue.enqueue("b", group_key="g")
    claim = queue.dequeue(2)[0].claim_id
    [row] = explained(queue, second)
    assert (row.reason, row.blocking_id, row.claim_id) == ("group", first, claim)


def test_dead_message_that_holds_its_group_is_named(queue: CheckedQueue) -> None:
    queue.call("alter_queue", group_after_dead="hold")
    [dead] = queue.make_dead("a", group_key="g")
    [second] = queue.enqueue("b", group_key="g")
    [row] = explained(queue, second)
    assert (row.reason, row.blocking_id, row.clears_at) == ("group_dead", dead, None)


def test_pause_of_a_group_names_its_end(queue: CheckedQueue) -> None:
    queue.call("alter_queue", group_pause_seconds=60.0)
    _, second = queue.enqueue("a", "b", group_key="g")
    queue.finish_one()
    [row] = explained(queue, second)
    assert row.reason == "group_pause"
    assert row.clears_at is not None
    queue.pass_seconds(62)
    assert reasons(queue, second) == ["deferred"]
    queue.call("maintain")
    assert reasons(queue, second) == READY


def test_blocked_message_names_its_predecessor(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("a")
    [second] = queue.enqueue("b", predecessor_ids=[first], delay_seconds=500)
    assert reasons(queue, second) == ["predecessor", "delayed"]
    claim = queue.dequeue_one(worker_name="w1").claim_id
    row = explained(queue, second)[0]
    assert (row.reason, row.blocking_id, row.claim_id) == ("predecessor", first, claim)
    assert (row.worker_name, row.clears_at) == ("w1", queue.message(first).lease_until)
    assert row.detail == "it waits for its predecessor, which is leased"
    queue.call("fail_now", claim_id=claim)
    row = explained(queue, second)[0]
    assert (row.reason, row.blocking_id, row.clears_at) == ("predecessor_dead", first, None)


def test_limits_of_the_queue_are_two_reasons(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_leased=1, rate_limit=1, rate_seconds=60.0)
    first, second = queue.enqueue("a", "b")
    row = queue.dequeue_one()
    leased, rate, following = explained(queue, second)
    assert (leased.reason, leased.clears_at) == ("max_leased", row.lease_until)
    assert leased.detail == "the queue is at its max_leased of 1"
    assert (rate.reason, following.reason) == ("rate_limit", "next")
    assert rate.clears_at - queue.message(first).enqueued_at < timedelta(seconds=90)
    queue.pass_seconds(61)
    assert reasons(queue, second) == ["max_leased", "next", "no_worker", "no_maintain"]


def test_message_that_expires_names_the_time(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", expire_seconds=100)
    row = explained(queue, message_id)[-1]
    assert (row.reason, row.clears_at) == ("expires", queue.message(message_id).expires_at)
    queue.dequeue_one()
    assert reasons(queue, message_id) == ["leased"]


def test_dead_message_has_one_reason(queue: CheckedQueue) -> None:
    [message_id] = queue.make_dead("a", expire_seconds=100)
    queue.call("pause_queue")
    assert reasons(queue, message_id) == ["dead"]


@pytest.mark.parametrize("kept", [{"archive_days": 1}, {"result_seconds": 60.0}])
def test_ended_message_names_its_outcome(queue: CheckedQueue, kept: dict[str, float]) -> None:
    queue.call("alter_queue", **kept)
    completed, cancelled = queue.enqueue("a", "b")
    queue.finish_one()
    queue.call("cancel", message_ids=[cancelled])
    for _ in range(2):
        assert explained(queue, completed)[0].detail == "it has ended: completed"
        assert explained(queue, cancelled)[0].detail == "it has ended: cancelled"
        queue.call("maintain")


def test_message_without_a_trace_is_unknown(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    other = queue.another().enqueue("a")[0]
    queue.finish_one()
    for unknown in (message_id, other, 0, -1, 2**63 - 1):
        assert reasons(queue, unknown) == ["unknown"]


def test_explain_message_refuses_bad_arguments(queue: CheckedQueue) -> None:
    queue.refused("RQ711", "explain_message", message_id=None)
    refused(queue.connection, "RQ701", "explain_message", queue_name="nowhere", message_id=1)
