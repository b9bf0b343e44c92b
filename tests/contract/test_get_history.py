"""get_history: worker, times and outcome of each attempt."""

from datetime import timedelta
from typing import Any

import pytest

from tests.helpers.calls import Row, transaction
from tests.helpers.history import DAY, KEPT_DAYS, history_of, keeping, past
from tests.helpers.queues import CheckedQueue

__all__ = ["keeping"]

pytestmark = pytest.mark.promise("P37")

OUTCOMES = {
    "complete": "completed",
    "retry_later": "retrying",
    "fail_now": "dead",
    "release": "released",
    "reap": "lease_expired",
    "maintain": "lease_expired",
}
"""The outcome of an attempt by the routine that ends it."""

ERRORS = {"retry_later": "broken", "fail_now": "broken"}
"""The error passed to a routine that takes one."""

each_end = pytest.mark.parametrize("routine", OUTCOMES)


def leased(queue: CheckedQueue, *bodies: str, **arguments: Any) -> tuple[int, list[int]]:
    """Enqueue messages and lease them to w1; return the claim and their ids."""
    ids = queue.enqueue(*bodies, **arguments)
    return queue.dequeue(len(ids), worker_name="w1")[0].claim_id, ids


def end(queue: CheckedQueue, routine: str, claim: int, ids: list[int] | None = None) -> None:
    """End the attempts of a claim, or of `ids`; a lease expires as a whole."""
    if routine in {"reap", "maintain"}:
        queue.pass_seconds(1000)
        queue.call(routine)
        return
    given = {"error": ERRORS[routine]} if routine in ERRORS else {}
    queue.call(routine, claim_id=claim, message_ids=ids, **given)


def error_of(routine: str) -> str | None:
    """Return the error of an attempt of w1 that this routine ended."""
    return ERRORS.get(
        routine, "lease expired: w1" if OUTCOMES[routine] == "lease_expired" else None
    )


@each_end
@pytest.mark.parametrize("size", [1, 3])
def test_history_has_each_outcome_of_an_attempt(
    keeping: CheckedQueue, routine: str, size: int
) -> None:
    claim, ids = leased(keeping, *"abc"[:size])
    end(keeping, routine, claim)
    for message in ids:
        assert past(keeping, message) == [(1, "w1", OUTCOMES[routine], error_of(routine))]


@pytest.mark.parametrize("routine", ["complete", "retry_later", "fail_now", "release"])
@pytest.mark.parametrize("named", [1, 2])
def test_history_of_a_partly_ended_claim_has_that_part(
    keeping: CheckedQueue, routine: str, named: int
) -> None:
    claim, ids = leased(keeping, "a", "b", "c")
    end(keeping, routine, claim, ids[:named])
    ended = (1, "w1", OUTCOMES[routine], error_of(routine))
    for number, message in enumerate(ids):
        assert past(keeping, message) == ([ended] if number < named else [(1, "w1", None, None)])
    end(keeping, "complete", claim)
    for message in ids[named:]:
        assert past(keeping, message) == [(1, "w1", "completed", None)]


@pytest.mark.promise("P08")
@pytest.mark.parametrize("routine", ["complete", "retry_later", "fail_now", "release"])
def test_stale_message_adds_no_attempt(keeping: CheckedQueue, routine: str) -> None:
    claim, ids = leased(keeping, "a", "b")
    end(keeping, "complete", claim, ids[:1])
    end(keeping, routine, claim, ids)
    assert past(keeping, ids[0]) == [(1, "w1", "completed", None)]
    assert past(keeping, ids[1]) == [(1, "w1", OUTCOMES[routine], error_of(routine))]
    keeping.refused("RQ721", routine, claim_id=claim)
    assert keeping.stored()["history"] == 2


def test_get_history_returns_the_current_lease_last(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    assert past(keeping, message) == []
    keeping.call("retry_later", claim_id=keeping.dequeue_one(worker_name="w1").claim_id, error="no")
    keeping.pass_seconds(1)
    keeping.call("promote")
    keeping.dequeue_one(worker_name="w2")
    keeping.pass_seconds(1000)
    keeping.call("reap")
    keeping.call("release", claim_id=keeping.dequeue_one(worker_name="w3").claim_id)
    keeping.dequeue_one()
    # A release returns the attempt.
    assert past(keeping, message) == [
        (1, "w1", "retrying", "no"),
        (2, "w2", "lease_expired", "lease expired: w2"),
        (3, "w3", "released", None),
        (3, None, None, None),
    ]


@pytest.mark.promise("P38")
def test_snoozed_attempts_have_the_same_number(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a", max_attempts=1)
    for _ in range(2):
        claim = keeping.dequeue_one(worker_name="w1").claim_id
        keeping.call("release", claim_id=claim, delay_seconds=5)
        keeping.pass_seconds(10)
        keeping.call("promote")
    assert past(keeping, message) == [(1, "w1", "snoozed", None)] * 2


@pytest.mark.promise("P10")
def test_one_call_may_end_attempts_with_two_outcomes(keeping: CheckedQueue) -> None:
    (first,) = keeping.enqueue("a", max_attempts=1)
    (second,) = keeping.enqueue("b", max_attempts=2)
    claim = keeping.dequeue(2, worker_name="w1")[0].claim_id
    keeping.call("retry_later", claim_id=claim, error="no")
    assert past(keeping, first) == [(1, "w1", "dead", "no")]
    assert past(keeping, second) == [(1, "w1", "retrying", "no")]


@pytest.mark.promise("P09")
def test_expired_last_lease_is_lease_expired(keeping: CheckedQueue) -> None:
    (first,) = keeping.enqueue("a", max_attempts=1)
    (second,) = keeping.enqueue("b")
    keeping.dequeue(2)
    keeping.pass_seconds(1000)
    keeping.call("reap")
    assert (keeping.state_of(first), keeping.state_of(second)) == ("dead", "ready")
    for message in (first, second):
        assert past(keeping, message) == [(1, None, "lease_expired", "lease expired")]


@pytest.mark.promise("P34")
@pytest.mark.parametrize("routine", ["retry_later", "fail_now", "release", "reap", "maintain"])
@pytest.mark.parametrize("size", [1, 3])
def test_attempt_of_a_cancelled_message_ends_cancelled(
    keeping: CheckedQueue, routine: str, size: int
) -> None:
    claim, ids = leased(keeping, *"abc"[:size])
    keeping.call("cancel", message_ids=ids[:1], include_leased=True)
    end(keeping, routine, claim)
    assert past(keeping, ids[0]) == [(1, "w1", "cancelled", None)]
    for message in ids[1:]:
        assert past(keeping, message) == [(1, "w1", OUTCOMES[routine], error_of(routine))]


@pytest.mark.promise("P34")
def test_completed_after_a_requested_cancel_is_completed(
    keeping: CheckedQueue,
) -> None:
    claim, ids = leased(keeping, "a", "b")
    keeping.call("cancel", message_ids=ids, include_leased=True)
    keeping.call("complete", claim_id=claim, message_ids=ids[:1])
    keeping.call("complete", claim_id=claim)
    assert [past(keeping, message) for message in ids] == [[(1, "w1", "completed", None)]] * 2


def test_message_that_was_never_leased_has_no_attempt(keeping: CheckedQueue) -> None:
    ids = keeping.enqueue("a", "b")
    keeping.call("cancel", message_ids=ids[:1])
    keeping.call("purge_queue")
    assert [past(keeping, message) for message in ids] == [[], []]
    assert keeping.stored()["history"] == 0


def test_attempt_has_the_times_of_dequeue_and_end(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    row = keeping.dequeue_one(lease_seconds=600)
    (lease,) = history_of(keeping, message)
    assert abs(lease.leased_at + timedelta(seconds=600) - row.lease_until) < timedelta(seconds=1)
    keeping.call("extend_lease", claim_id=row.claim_id, lease_seconds=1200)
    assert history_of(keeping, message)[0].leased_at == lease.leased_at
    keeping.pass_seconds(100)
    keeping.call("complete", claim_id=row.claim_id)
    (attempt,) = history_of(keeping, message)
    lasted = attempt.ended_at - attempt.leased_at
    assert timedelta(seconds=100) <= lasted < timedelta(seconds=130)


def test_dequeue_and_complete_in_one_transaction_are_recorded(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    with transaction(keeping.connection):
        keeping.call("complete", claim_id=keeping.dequeue_one(worker_name="w1").claim_id)
    assert past(keeping, message) == [(1, "w1", "completed", None)]


def test_reset_keeps_earlier_attempts(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("fail_now", claim_id=claim, error="no")
    keeping.call("reset", message_ids=[message])
    keeping.call("complete", claim_id=keeping.dequeue_one(worker_name="w2").claim_id)
    assert past(keeping, message) == [(1, "w1", "dead", "no"), (1, "w2", "completed", None)]


def test_history_keeps_2000_characters_of_an_error(keeping: CheckedQueue) -> None:
    claim, ids = leased(keeping, "a", "b")
    for routine, message in zip(("retry_later", "fail_now"), ids, strict=True):
        keeping.call(routine, claim_id=claim, message_ids=[message], error="ü" * 3000)
        (attempt,) = history_of(keeping, message)
        assert attempt.error == "ü" * 2000


@pytest.mark.parametrize("archive_days", [0, 1])
def test_history_outlives_its_message(keeping: CheckedQueue, archive_days: int) -> None:
    keeping.call("alter_queue", archive_days=archive_days, result_seconds=60)
    claim, ids = leased(keeping, "a", "b", "c")
    keeping.call("complete", claim_id=claim, message_ids=ids[:1], results=["done"])
    keeping.call("complete", claim_id=claim)
    keeping.call("archive")
    assert {keeping.state_of(message) for message in ids} == {"completed" if archive_days else None}
    for message in ids:
        assert past(keeping, message) == [(1, "w1", "completed", None)]
        assert keeping.call_one("get_result", message_id=message).state == "completed"


@pytest.mark.promise("P22", "P25", "P28", "P29")
def test_history_works_with_groups_limits_and_predecessors(keeping: CheckedQueue) -> None:
    keeping.call("alter_queue", max_leased=10, rate_limit=100, rate_seconds=60)
    first, second = keeping.enqueue("a", "b", group_key="g", dedup_key=None)
    (third,) = keeping.enqueue("c", predecessor_ids=[second])
    for _ in range(3):
        row = keeping.dequeue_one(worker_name="w1")
        keeping.call("complete", claim_id=row.claim_id, message_ids=[row.message_id])
    ended: list[Row] = []
    for message in (first, second, third):
        assert past(keeping, message) == [(1, "w1", "completed", None)]
        ended += history_of(keeping, message)
    assert [row.ended_at for row in ended] == sorted(row.ended_at for row in ended)


@pytest.mark.promise("P27")
def test_message_failed_by_its_predecessor_has_no_attempt(keeping: CheckedQueue) -> None:
    claim, (first,) = leased(keeping, "a")
    (second,) = keeping.enqueue("b", predecessor_ids=[first], on_predecessor_dead="fail")
    keeping.call("fail_now", claim_id=claim)
    assert keeping.state_of(second) == "dead"
    assert past(keeping, first) == [(1, "w1", "dead", None)]
    assert past(keeping, second) == []


@each_end
def test_without_history_days_only_the_lease_is_returned(queue: CheckedQueue, routine: str) -> None:
    claim, ids = leased(queue, "a", "b")
    for message in ids:
        assert past(queue, message) == [(1, "w1", None, None)]
    end(queue, routine, claim)
    for message in ids:
        assert past(queue, message) == []
    assert queue.stored()["history"] == 0


@each_end
def test_history_may_be_enabled_during_a_lease(queue: CheckedQueue, routine: str) -> None:
    claim, (message,) = leased(queue, "a")
    queue.call("alter_queue", history_days=KEPT_DAYS)
    (lease,) = history_of(queue, message)
    end(queue, routine, claim)
    assert past(queue, message) == [(1, "w1", OUTCOMES[routine], error_of(routine))]
    assert history_of(queue, message)[0].leased_at <= lease.leased_at


@each_end
def test_history_may_be_disabled_during_a_lease(keeping: CheckedQueue, routine: str) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("retry_later", claim_id=claim, delay_seconds=0)
    keeping.call("promote")
    claim = keeping.dequeue_one().claim_id
    keeping.call("alter_queue", history_days=0)
    keeping.call("purge_archive")
    assert past(keeping, message) == [(2, None, None, None)]
    end(keeping, routine, claim)
    assert keeping.stored()["history"] == 0


@pytest.mark.parametrize("routine", ["maintain", "purge_archive"])
def test_history_is_kept_for_history_days(keeping: CheckedQueue, routine: str) -> None:
    claim, (old,) = leased(keeping, "a")
    keeping.call("complete", claim_id=claim)
    keeping.pass_seconds((KEPT_DAYS - 1) * DAY)
    claim, (new,) = leased(keeping, "b")
    keeping.call("complete", claim_id=claim)
    keeping.call(routine)
    assert past(keeping, old) == past(keeping, new) == [(1, "w1", "completed", None)]
    keeping.pass_seconds(2 * DAY)
    keeping.call(routine)
    assert past(keeping, old) == []
    assert past(keeping, new) == [(1, "w1", "completed", None)]
    keeping.pass_seconds(KEPT_DAYS * DAY)
    keeping.call(routine)
    assert keeping.stored()["history"] == 0


def test_maintain_purges_only_expired_attempts_of_a_message(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("release", claim_id=claim)
    keeping.pass_seconds((KEPT_DAYS + 1) * DAY)
    keeping.call("release", claim_id=keeping.dequeue_one(worker_name="w2").claim_id)
    assert len(past(keeping, message)) == 2
    keeping.call("maintain")
    assert past(keeping, message) == [(1, "w2", "released", None)]


def test_purge_archive_purges_at_most_batch_size_attempts(keeping: CheckedQueue) -> None:
    claim, _ = leased(keeping, *"abcde")
    keeping.call("complete", claim_id=claim)
    keeping.pass_seconds((KEPT_DAYS + 1) * DAY)
    purged = []
    for left in (3, 1, 0, 0):
        purged.append(keeping.call_one("purge_archive", batch_size=2).purged)
        assert keeping.stored()["history"] == left
    assert purged == [2, 2, 1, 0]


def test_maintain_purges_one_to_ten_batches_of_history(
    keeping: CheckedQueue,
) -> None:
    """Fewer than ten batches on a loaded machine, as its time is limited."""
    claim, _ = leased(keeping, *"abcdefghijklmnopqrstuvwxy")
    keeping.call("complete", claim_id=claim)
    keeping.pass_seconds((KEPT_DAYS + 1) * DAY)
    left = 25
    while left:
        purged = keeping.call_one("maintain", batch_size=1).purged
        assert 1 <= purged <= 10
        left -= purged
        assert keeping.stored()["history"] == left
    assert keeping.call_one("maintain", batch_size=1).purged == 0


def test_history_is_purged_after_history_days_is_set_to_zero(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("complete", claim_id=claim)
    keeping.call("maintain")
    keeping.call("alter_queue", history_days=0)
    assert past(keeping, message) == [(1, "w1", "completed", None)]
    keeping.pass_seconds(120)
    keeping.call("maintain")
    assert keeping.stored()["history"] == 0


def test_drop_queue_removes_history(keeping: CheckedQueue) -> None:
    other = keeping.another(history_days=1)
    for queue in (keeping, other):
        queue.enqueue("a")
        queue.finish_one()
    keeping.call("drop_queue")
    keeping.call("create_queue", history_days=1)
    assert keeping.stored()["history"] == 0
    assert other.stored()["history"] == 1
    other.call("drop_queue")


def test_get_history_of_an_unknown_message_is_empty(keeping: CheckedQueue) -> None:
    other = keeping.another(history_days=1)
    claim, (message,) = leased(keeping, "a")
    assert past(other, message) == []
    keeping.call("complete", claim_id=claim)
    for unknown in (message, 0, 2**62):
        assert past(other, unknown) == []
    other.refused("RQ711", "get_history", message_id=None)
    other.call("drop_queue")
