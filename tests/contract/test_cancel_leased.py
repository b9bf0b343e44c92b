"""cancel of messages that a worker holds, and what becomes of them."""

from typing import Any

import pytest

from tests.helpers.calls import bodies, outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.requires("cancel")

GIVE_UP: dict[str, dict[str, Any]] = {
    "retry_later": {"delay_seconds": 0, "error": "broken"},
    "fail_now": {"error": "broken"},
    "release": {},
}
"""What ends a claim without completing it, and what is given to it."""

each_end = pytest.mark.parametrize("routine", GIVE_UP)


def cancel(queue: CheckedQueue, *ids: int) -> list[str]:
    rows = queue.call("cancel", message_ids=list(ids), include_leased=True)
    assert [row.message_id for row in rows] == list(ids)
    return [row.outcome for row in rows]


def noted(queue: CheckedQueue, claim_id: int) -> list[int] | None:
    ids: list[int] | None = queue.call_one("extend_lease", claim_id=claim_id).cancel_ids
    return ids and sorted(ids)


@pytest.mark.promise("P34")
@pytest.mark.parametrize("how", ["one", "batch", "apart"])
def test_the_worker_is_told_at_its_heartbeat(queue: CheckedQueue, how: str) -> None:
    if how == "apart":
        queue.enqueue("first", priority=0)
    queue.enqueue(*"abc")
    rows = queue.dequeue(1 if how == "one" else 10)
    claim_id, ids = rows[0].claim_id, [row.message_id for row in rows]
    assert noted(queue, claim_id) is None
    assert cancel(queue, ids[-1]) == ["requested"]
    assert noted(queue, claim_id) == ids[-1:]
    assert cancel(queue, ids[-1]) == ["requested"]
    assert noted(queue, claim_id) == ids[-1:]
    assert cancel(queue, *ids) == ["requested"] * len(ids)
    assert noted(queue, claim_id) == sorted(ids)


@pytest.mark.promise("P03", "P15")
@pytest.mark.parametrize("given", [{}, {"include_leased": False}])
def test_a_message_is_noted_only_where_it_is_asked_for(
    queue: CheckedQueue, given: dict[str, bool]
) -> None:
    [message_id] = queue.enqueue("a")
    claim_id = queue.dequeue_one().claim_id
    done = queue.call("cancel", message_ids=[message_id], **given)
    assert outcomes(done) == {message_id: "leased"}
    assert noted(queue, claim_id) is None


@pytest.mark.promise("P15", "P34")
def test_each_message_has_its_own_outcome(queue: CheckedQueue) -> None:
    other = queue.another()
    [elsewhere] = other.enqueue("elsewhere")
    other.dequeue_one()
    [dead] = queue.make_dead("dead")
    first, second, third, waiting = queue.enqueue(*"abcd")
    claims = [queue.dequeue(2)[0].claim_id, queue.dequeue_one().claim_id]
    ids = [waiting, third, -1, first, elsewhere, dead]
    assert cancel(queue, *ids) == [
        *("cancelled", "requested", "not_found", "requested", "not_found", "cancelled")
    ]
    assert [noted(queue, claim_id) for claim_id in claims] == [[first], [third]]
    assert queue.state_of(second) == "leased"


@pytest.mark.promise("P34")
@each_end
@pytest.mark.parametrize("archive_days", [0, 1])
def test_what_is_given_up_after_it_was_cancelled_ends(
    queue: CheckedQueue, routine: str, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue(*"abc")
    claim_id = queue.dequeue(3)[0].claim_id
    cancel(queue, ids[1])
    done = queue.call(routine, claim_id=claim_id, **GIVE_UP[routine])
    assert outcomes(done)[ids[1]] == "cancelled"
    assert "cancelled" not in {outcomes(done)[ids[0]], outcomes(done)[ids[2]]}
    if routine == "retry_later":
        assert [row.due_at is None for row in done if row.message_id == ids[1]] == [True]
    assert queue.state_of(ids[1]) == ("cancelled" if archive_days else None)
    queue.pass_seconds(10000)
    queue.call("maintain")
    assert queue.state_of(ids[1]) == ("cancelled" if archive_days else None)
    queue.call("reset")
    assert set(queue.take()) == {"a", "c"}


@pytest.mark.promise("P34")
@each_end
def test_all_of_a_claim_may_be_cancelled(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue(*"abc")
    claim_id = queue.dequeue(3)[0].claim_id
    cancel(queue, *ids)
    done = queue.call(routine, claim_id=claim_id, **GIVE_UP[routine])
    assert outcomes(done) == dict.fromkeys(ids, "cancelled")
    assert sum(queue.stored().values()) == 0
    queue.refused("RQ721", routine, claim_id=claim_id)


@pytest.mark.promise("P34")
@each_end
@pytest.mark.parametrize("archive_days", [0, 1])
def test_a_part_of_a_claim_leaves_the_notes_of_the_rest(
    queue: CheckedQueue, routine: str, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue(*"abcdef")
    claim_id = queue.dequeue(6)[0].claim_id
    cancel(queue, ids[1], ids[3], ids[5])
    given = {"claim_id": claim_id, **GIVE_UP[routine]}

    done = queue.call(routine, message_ids=[ids[0], ids[1], -1], **given)
    assert [row.outcome for row in done][1:] == ["cancelled", "stale"]
    assert noted(queue, claim_id) == [ids[3], ids[5]]
    done = queue.call(routine, message_ids=[ids[5]], **given)
    assert outcomes(done) == {ids[5]: "cancelled"}
    assert noted(queue, claim_id) == [ids[3]]
    done = queue.call("complete", claim_id=claim_id, message_ids=[ids[3]])
    assert outcomes(done) == {ids[3]: "completed"}
    assert noted(queue, claim_id) is None
    done = queue.call(routine, **given)
    assert set(outcomes(done)) == {ids[2], ids[4]}
    assert "cancelled" not in outcomes(done).values()


@pytest.mark.promise("P04", "P34")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("part", [False, True])
def test_completing_is_completing(queue: CheckedQueue, archive_days: int, part: bool) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue(*"abc")
    claim_id = queue.dequeue(3)[0].claim_id
    cancel(queue, *ids[:2])
    done = queue.call("complete", claim_id=claim_id, message_ids=ids[1:] if part else None)
    assert set(outcomes(done).values()) == {"completed"}
    assert queue.state_of(ids[1]) == ("completed" if archive_days else None)
    if part:
        assert noted(queue, claim_id) == ids[:1]
        assert outcomes(queue.call("release", claim_id=claim_id)) == {ids[0]: "cancelled"}


@pytest.mark.promise("P09", "P34")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("max_attempts", [1, 5])
def test_a_lease_that_runs_out_ends_what_was_cancelled(
    queue: CheckedQueue, archive_days: int, max_attempts: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days, max_attempts=max_attempts)
    ids = queue.enqueue(*"abc")
    queue.dequeue(3)
    cancel(queue, *ids[:2])
    queue.pass_seconds(10000)
    row = queue.call_one("reap")
    assert (row.reaped, row.died) == ((0, 1) if max_attempts == 1 else (1, 0))
    assert queue.state_of(ids[0]) == ("cancelled" if archive_days else None)
    if max_attempts > 1:
        assert queue.take() == ["c"]


@pytest.mark.promise("P09", "P34")
def test_reap_counts_what_it_ends_and_stops(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*"abc")
    for _ in ids:
        queue.dequeue_one()
    cancel(queue, *ids)
    queue.pass_seconds(10000)
    for left in (2, 1, 0):
        row = queue.call_one("reap", batch_size=1)
        assert (row.reaped, row.died) == (0, 0)
        assert queue.counts() == (0, 0, left, 0)
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P34")
def test_maintain_ends_what_was_cancelled(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    queue.dequeue_one()
    cancel(queue, message_id)
    queue.pass_seconds(10000)
    queue.call("maintain")
    assert queue.state_of(message_id) is None


@pytest.mark.promise("P12", "P34")
@each_end
def test_the_key_of_what_was_cancelled_is_free(queue: CheckedQueue, routine: str) -> None:
    [message_id] = queue.enqueue("a", dedup_key="key")
    claim_id = queue.dequeue_one().claim_id
    cancel(queue, message_id)
    assert queue.call_one("enqueue", dedup_key="key").outcome == "duplicate"
    queue.call(routine, claim_id=claim_id, **GIVE_UP[routine])
    assert queue.held_keys() == 0
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P22", "P34")
@each_end
@pytest.mark.parametrize("group_after_dead", ["continue", "hold"])
def test_its_group_goes_on(queue: CheckedQueue, routine: str, group_after_dead: str) -> None:
    queue.call("alter_queue", group_after_dead=group_after_dead)
    first, second = queue.enqueue("a", "b", group_key="g")
    claim_id = queue.dequeue_one().claim_id
    cancel(queue, first)
    assert queue.take() == []
    queue.call(routine, claim_id=claim_id, **GIVE_UP[routine])
    assert [row.message_id for row in queue.dequeue(10)] == [second]


@pytest.mark.promise("P26", "P34")
@each_end
def test_what_waited_for_it_is_free(queue: CheckedQueue, routine: str) -> None:
    [first] = queue.enqueue("a")
    [second] = queue.enqueue("b", predecessor_ids=[first])
    claim_id = queue.dequeue_one().claim_id
    cancel(queue, first)
    assert queue.take() == []
    queue.call(routine, claim_id=claim_id, **GIVE_UP[routine])
    assert [row.message_id for row in queue.dequeue(10)] == [second]


@pytest.mark.promise("P12", "P22", "P26", "P34")
def test_a_lease_that_runs_out_frees_all_of_that(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("a", group_key="g", dedup_key="key")
    queue.enqueue("next", group_key="g")
    queue.enqueue("after", predecessor_ids=[first])
    queue.dequeue_one()
    cancel(queue, first)
    queue.pass_seconds(10000)
    queue.call("reap")
    assert set(queue.take()) == {"after", "next"}
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P17", "P34")
def test_a_rolled_back_cancel_leaves_no_note(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b")
    claim_id = queue.dequeue(2)[0].claim_id
    cancel(queue, ids[0])
    with rolled_back(queue.connection):
        assert cancel(queue, *ids) == ["requested", "requested"]
    assert noted(queue, claim_id) == ids[:1]
    queue.call("release", claim_id=claim_id)
    assert bodies(queue.dequeue(2)) == ["b"]


@pytest.mark.promise("P17", "P34")
@each_end
def test_an_end_that_is_rolled_back_leaves_the_note(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue("a", "b")
    claim_id = queue.dequeue(2)[0].claim_id
    cancel(queue, ids[0])
    for part in (ids[:1], ids[1:], None):
        with rolled_back(queue.connection):
            queue.call(routine, claim_id=claim_id, message_ids=part, **GIVE_UP[routine])
    assert noted(queue, claim_id) == ids[:1]


@pytest.mark.promise("P03", "P06", "P34")
@pytest.mark.requires("genuine")
def test_a_dequeue_that_is_not_committed_cannot_be_told(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    [message_id] = queue.enqueue("being taken")
    with transaction(elsewhere.connection):
        claim_id = elsewhere.dequeue_one().claim_id
        assert cancel(queue, message_id) == ["leased"]
    assert cancel(queue, message_id) == ["requested"]
    assert noted(queue, claim_id) == [message_id]


@pytest.mark.promise("P34")
def test_a_message_named_twice_is_noted_once(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    claim_id = queue.dequeue_one().claim_id
    assert cancel(queue, message_id, message_id) == ["requested", "requested"]
    assert noted(queue, claim_id) == [message_id]


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P34")
def test_ten_thousand_messages_of_many_claims_are_noted_at_once(queue: CheckedQueue) -> None:
    rows = queue.call("enqueue_batch", messages=[{"priority": n % 2} for n in range(10000)])
    ids = [row.message_id for row in rows]
    claims = {row.claim_id for _ in range(20) for row in queue.dequeue(400)}
    done = cancel(queue, *ids)
    assert (done.count("requested"), done.count("cancelled")) == (8000, 2000)
    told = [noted(queue, claim_id) or [] for claim_id in claims]
    assert sum(len(some) for some in told) == 8000
    queue.pass_seconds(10000)
    queue.call("reap", batch_size=10000)
    assert sum(queue.stored().values()) == 0
