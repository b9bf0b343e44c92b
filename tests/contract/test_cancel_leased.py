"""cancel with include_leased: the heartbeat returns the ids, and returning a message ends it."""

from typing import Any

import pytest

from tests.helpers.calls import Row, bodies, outcomes, rolled_back
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.requires("cancel")

RETURNS: dict[str, dict[str, Any]] = {
    "retry_later": {"delay_seconds": 0, "error": "broken"},
    "fail_now": {"error": "broken"},
    "release": {},
    "snooze": {"delay_seconds": 5},
}
"""Ways to end a claim without completing it, and their arguments; snooze is release."""

each_end = pytest.mark.parametrize("way", RETURNS)


def give_back(queue: CheckedQueue, way: str, **arguments: Any) -> list[Row]:
    routine = "release" if way == "snooze" else way
    return queue.call(routine, **RETURNS[way], **arguments)


def cancel(queue: CheckedQueue, *ids: int) -> list[str]:
    rows = queue.call("cancel", message_ids=list(ids), include_leased=True)
    assert [row.message_id for row in rows] == list(ids)
    return [row.outcome for row in rows]


def cancel_ids_of(queue: CheckedQueue, claim_id: int) -> list[int] | None:
    ids: list[int] | None = queue.call_one("extend_lease", claim_id=claim_id).cancel_ids
    return ids and sorted(ids)


@pytest.mark.promise("P34")
@pytest.mark.parametrize("claim_of", ["one", "batch", "apart"])
def test_heartbeat_returns_the_cancelled_ids(queue: CheckedQueue, claim_of: str) -> None:
    if claim_of == "apart":
        queue.enqueue("first", priority=0)
    queue.enqueue(*"abc")
    rows = queue.dequeue(1 if claim_of == "one" else 10)
    claim_id, ids = rows[0].claim_id, [row.message_id for row in rows]
    assert cancel_ids_of(queue, claim_id) is None
    assert cancel(queue, ids[-1]) == ["requested"]
    assert cancel_ids_of(queue, claim_id) == ids[-1:]
    assert cancel(queue, ids[-1]) == ["requested"]
    assert cancel_ids_of(queue, claim_id) == ids[-1:]
    assert cancel(queue, *ids) == ["requested"] * len(ids)
    assert cancel_ids_of(queue, claim_id) == sorted(ids)


@pytest.mark.promise("P03", "P15")
@pytest.mark.parametrize("arguments", [{}, {"include_leased": False}])
def test_cancel_skips_leased_messages_without_include_leased(
    queue: CheckedQueue, arguments: dict[str, bool]
) -> None:
    [message_id] = queue.enqueue("a")
    claim_id = queue.dequeue_one().claim_id
    done = queue.call("cancel", message_ids=[message_id], **arguments)
    assert outcomes(done) == {message_id: "leased"}
    assert cancel_ids_of(queue, claim_id) is None


@pytest.mark.promise("P15", "P34")
def test_cancel_of_leased_returns_an_outcome_per_message(queue: CheckedQueue) -> None:
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
    assert [cancel_ids_of(queue, claim_id) for claim_id in claims] == [[first], [third]]
    assert queue.state_of(second) == "leased"


@pytest.mark.promise("P34")
@each_end
@pytest.mark.parametrize("archive_days", [0, 1])
def test_returning_a_cancelled_message_ends_it(
    queue: CheckedQueue, way: str, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue(*"abc")
    claim_id = queue.dequeue(3)[0].claim_id
    cancel(queue, ids[1])
    done = give_back(queue, way, claim_id=claim_id)
    assert outcomes(done)[ids[1]] == "cancelled"
    assert "cancelled" not in {outcomes(done)[ids[0]], outcomes(done)[ids[2]]}
    if way in {"retry_later", "snooze"}:
        assert [row.due_at is None for row in done if row.message_id == ids[1]] == [True]
    assert queue.state_of(ids[1]) == ("cancelled" if archive_days else None)
    queue.pass_seconds(10000)
    queue.call("maintain")
    assert queue.state_of(ids[1]) == ("cancelled" if archive_days else None)
    queue.call("reset")
    assert set(queue.take()) == {"a", "c"}


@pytest.mark.promise("P34")
@each_end
def test_all_messages_of_a_claim_may_be_cancelled(queue: CheckedQueue, way: str) -> None:
    ids = queue.enqueue(*"abc")
    claim_id = queue.dequeue(3)[0].claim_id
    cancel(queue, *ids)
    done = give_back(queue, way, claim_id=claim_id)
    assert outcomes(done) == dict.fromkeys(ids, "cancelled")
    assert sum(queue.stored().values()) == 0
    queue.refused("RQ721", "complete", claim_id=claim_id)


@pytest.mark.promise("P34")
@each_end
@pytest.mark.parametrize("archive_days", [0, 1])
def test_returning_some_messages_keeps_the_cancel_of_others(
    queue: CheckedQueue, way: str, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue(*"abcdef")
    claim_id = queue.dequeue(6)[0].claim_id
    cancel(queue, ids[1], ids[3], ids[5])

    done = give_back(queue, way, claim_id=claim_id, message_ids=[ids[0], ids[1], -1])
    assert [row.outcome for row in done][1:] == ["cancelled", "stale"]
    assert cancel_ids_of(queue, claim_id) == [ids[3], ids[5]]
    done = give_back(queue, way, claim_id=claim_id, message_ids=[ids[5]])
    assert outcomes(done) == {ids[5]: "cancelled"}
    assert cancel_ids_of(queue, claim_id) == [ids[3]]
    done = queue.call("complete", claim_id=claim_id, message_ids=[ids[3]])
    assert outcomes(done) == {ids[3]: "completed"}
    assert cancel_ids_of(queue, claim_id) is None
    done = give_back(queue, way, claim_id=claim_id)
    assert set(outcomes(done)) == {ids[2], ids[4]}
    assert "cancelled" not in outcomes(done).values()


@pytest.mark.promise("P04", "P34")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("part", [False, True])
def test_cancelled_message_may_still_be_completed(
    queue: CheckedQueue, archive_days: int, part: bool
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue(*"abc")
    claim_id = queue.dequeue(3)[0].claim_id
    cancel(queue, *ids[:2])
    done = queue.call("complete", claim_id=claim_id, message_ids=ids[1:] if part else None)
    assert set(outcomes(done).values()) == {"completed"}
    assert queue.state_of(ids[1]) == ("completed" if archive_days else None)
    if part:
        assert cancel_ids_of(queue, claim_id) == ids[:1]
        assert outcomes(queue.call("release", claim_id=claim_id)) == {ids[0]: "cancelled"}


@pytest.mark.promise("P09", "P34")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("max_attempts", [1, 5])
@pytest.mark.parametrize("routine", ["reap", "maintain"])
def test_expired_lease_ends_cancelled_messages(
    queue: CheckedQueue, routine: str, archive_days: int, max_attempts: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days, max_attempts=max_attempts)
    ids = queue.enqueue(*"abc")
    queue.dequeue(3)
    cancel(queue, *ids[:2])
    queue.pass_seconds(10000)
    row = queue.call_one(routine)
    assert (row.reaped, row.died) == ((0, 1) if max_attempts == 1 else (1, 0))
    assert queue.state_of(ids[0]) == ("cancelled" if archive_days else None)
    if max_attempts > 1:
        assert queue.take() == ["c"]


@pytest.mark.promise("P09", "P34")
def test_reap_ends_cancelled_messages_within_its_batch_size(queue: CheckedQueue) -> None:
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


@pytest.mark.promise("P12", "P22", "P26", "P34")
@pytest.mark.parametrize("way", [*RETURNS, "reap"])
@pytest.mark.parametrize("group_after_dead", ["continue", "hold"])
def test_end_of_a_cancelled_message_releases_its_links(
    queue: CheckedQueue, way: str, group_after_dead: str
) -> None:
    queue.call("alter_queue", group_after_dead=group_after_dead)
    [first] = queue.enqueue("first", group_key="g", dedup_key="key")
    queue.enqueue("next", group_key="g")
    queue.enqueue("after", predecessor_ids=[first])
    claim_id = queue.dequeue_one().claim_id
    cancel(queue, first)
    assert queue.take() == []
    assert queue.call_one("enqueue", dedup_key="key").outcome == "duplicate"
    if way == "reap":
        queue.pass_seconds(10000)
        queue.call("reap")
    else:
        give_back(queue, way, claim_id=claim_id)
    assert queue.held_keys() == 0
    assert set(queue.take()) == {"after", "next"}
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P17", "P34")
def test_rolled_back_cancel_of_leased_is_not_recorded(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b")
    claim_id = queue.dequeue(2)[0].claim_id
    cancel(queue, ids[0])
    with rolled_back(queue.connection):
        assert cancel(queue, *ids) == ["requested", "requested"]
    assert cancel_ids_of(queue, claim_id) == ids[:1]
    queue.call("release", claim_id=claim_id)
    assert bodies(queue.dequeue(2)) == ["b"]


@pytest.mark.promise("P17", "P34")
@each_end
def test_rolled_back_return_keeps_the_recorded_cancel(queue: CheckedQueue, way: str) -> None:
    ids = queue.enqueue("a", "b")
    claim_id = queue.dequeue(2)[0].claim_id
    cancel(queue, ids[0])
    for part in (ids[:1], ids[1:], None):
        with rolled_back(queue.connection):
            give_back(queue, way, claim_id=claim_id, message_ids=part)
    assert cancel_ids_of(queue, claim_id) == ids[:1]


@pytest.mark.promise("P34")
def test_cancel_of_leased_records_a_repeated_id_once(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    claim_id = queue.dequeue_one().claim_id
    assert cancel(queue, message_id, message_id) == ["requested", "requested"]
    assert cancel_ids_of(queue, claim_id) == [message_id]


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P34")
def test_cancel_of_leased_records_10000_messages_in_one_call(queue: CheckedQueue) -> None:
    rows = queue.call("enqueue_batch", messages=[{"priority": n % 2} for n in range(10000)])
    ids = [row.message_id for row in rows]
    claims = {row.claim_id for _ in range(20) for row in queue.dequeue(400)}
    done = cancel(queue, *ids)
    assert (done.count("requested"), done.count("cancelled")) == (8000, 2000)
    assert sum(len(cancel_ids_of(queue, claim_id) or []) for claim_id in claims) == 8000
    queue.pass_seconds(10000)
    queue.call("reap", batch_size=10000)
    assert sum(queue.stored().values()) == 0
