"""complete_and_dequeue: it equals complete and then dequeue_fast."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, bodies, refused, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.history import past
from tests.helpers.queues import CheckedQueue, new_queue
from tests.helpers.results import end_of

DEQUEUED = (
    "claim_id", "message_id", "attempt", "message_type", "headers", "body", "body_binary",
    "enqueued_at", "lease_until", "last_error",
)  # fmt: skip
MORE_THAN_ENOUGH = 10


def exchange(queue: CheckedQueue, claim_id: int, **arguments: Any) -> list[str | None]:
    """Complete messages and dequeue; none may be stale. Return the bodies of the new messages."""
    rows = queue.call("complete_and_dequeue", claim_id=claim_id, **arguments)
    assert {row.outcome for row in rows} <= {"leased"}
    return bodies(rows)


def stale(row: Row) -> int | None:
    """Return the message of a stale row, whose other columns must be null."""
    assert row.outcome == "stale"
    assert {getattr(row, name) for name in DEQUEUED[2:]} == {None}
    message_id: int | None = row.message_id
    return message_id


@pytest.mark.promise("P02", "P03", "P04", "P05")
@pytest.mark.parametrize("size", [1, 3])
def test_claim_is_completed_and_next_messages_are_leased(queue: CheckedQueue, size: int) -> None:
    queue.enqueue(*"abcdefg", headers={"a": 1}, message_type="type")
    claim = queue.dequeue(size)[0].claim_id
    rows = queue.call(
        "complete_and_dequeue",
        claim_id=claim,
        batch_size=size,
        worker_name="w1",
        lease_seconds=1000,
    )
    assert bodies(rows) == list("abcdefg"[size : 2 * size])
    assert len({row.claim_id for row in rows} | {claim}) == 2
    for row in rows:
        assert (row.outcome, row.attempt, row.last_error) == ("leased", 1, None)
        found = queue.message(row.message_id)
        assert (found.state, found.worker_name) == ("leased", "w1")
        for name in DEQUEUED[:-1]:
            assert getattr(found, name) == getattr(row, name)
    assert queue.counts() == (7 - 2 * size, 0, size, 0)
    assert queue.stored()["message"] == 7 - size


@pytest.mark.promise("P03")
def test_defaults_are_one_message_and_the_queues_lease(queue: CheckedQueue) -> None:
    queue.call("alter_queue", lease_seconds=5000)
    queue.enqueue("a", "b", "c")
    row = queue.call_one("complete_and_dequeue", claim_id=queue.dequeue_one().claim_id)
    assert row.body == "b"
    assert 4990 < (row.lease_until - row.enqueued_at).total_seconds() < 5100


@pytest.mark.promise("P04", "P05")
def test_worker_completes_all_messages_in_turn(queue: CheckedQueue) -> None:
    queue.enqueue(*"abcde")
    [row] = queue.dequeue()
    seen = [row.body]
    while rows := queue.call("complete_and_dequeue", claim_id=row.claim_id):
        [row] = rows
        seen.append(row.body)
    assert seen == list("abcde")
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P05")
def test_larger_claim_and_smaller_batch_and_back(queue: CheckedQueue) -> None:
    queue.enqueue(*map(str, range(9)), priority=3)
    queue.enqueue("urgent", priority=0)
    claim = queue.dequeue(4)[0].claim_id
    rows = queue.call("complete_and_dequeue", claim_id=claim)
    assert bodies(rows) == ["3"]
    rows = queue.call("complete_and_dequeue", claim_id=rows[0].claim_id, batch_size=3)
    assert bodies(rows) == ["4", "5", "6"]
    rows = queue.call("complete_and_dequeue", claim_id=rows[0].claim_id, batch_size=1000)
    assert bodies(rows) == ["7", "8"]
    assert queue.call("complete_and_dequeue", claim_id=rows[0].claim_id, batch_size=1000) == []
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P10", "P11")
def test_due_retry_is_leased_with_its_attempt_and_error(queue: CheckedQueue) -> None:
    queue.enqueue("retried")
    queue.finish_one("retry_later", delay_seconds=60, error="broken")
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.pass_seconds(61)
    row = queue.call_one("complete_and_dequeue", claim_id=claim)
    assert (row.body, row.attempt, row.last_error) == ("retried", 2, "broken")


@pytest.mark.promise("P08")
def test_part_of_a_claim_is_completed_by_ids(queue: CheckedQueue) -> None:
    queue.enqueue(*"abcdef")
    rows = queue.dequeue(4)
    ids = [row.message_id for row in rows]
    common = {"claim_id": rows[0].claim_id}
    assert exchange(queue, **common, message_ids=ids[1:2]) == ["e"]
    assert [queue.state_of(one) for one in ids] == ["leased", None, "leased", "leased"]
    assert exchange(queue, **common, message_ids=[ids[3], ids[0]]) == ["f"]
    assert [queue.state_of(one) for one in ids] == [None, None, "leased", None]
    assert exchange(queue, **common) == []
    assert queue.counts() == (0, 0, 2, 0)


@pytest.mark.promise("P08")
def test_part_of_a_claim_is_completed_if_nothing_is_ready(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*"abc")
    claim = queue.dequeue(3)[0].claim_id
    assert exchange(queue, claim, message_ids=ids[:1]) == []
    assert queue.counts() == (0, 0, 2, 0)


@pytest.mark.promise("P08")
@pytest.mark.parametrize("size", [1, 3])
def test_ids_may_be_those_of_the_whole_claim(queue: CheckedQueue, size: int) -> None:
    queue.enqueue(*"abcdef")
    rows = queue.dequeue(size)
    ids = [row.message_id for row in rows]
    claim = rows[0].claim_id
    assert (
        exchange(queue, claim, message_ids=ids[::-1], batch_size=2)
        == list("abcdef")[size : size + 2]
    )
    assert [queue.state_of(one) for one in ids] == [None] * size


@pytest.mark.promise("P08")
def test_empty_and_repeated_ids(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c", "d")
    rows = queue.dequeue(2)
    claim, message_id = rows[0].claim_id, rows[0].message_id
    assert exchange(queue, claim, message_ids=[]) == ["c"]
    assert exchange(queue, claim, message_ids=[message_id, message_id]) == ["d"]
    assert queue.state_of(message_id) is None
    assert queue.counts() == (0, 0, 3, 0)


@pytest.mark.promise("P08")
def test_stale_ids_are_returned_before_leased_messages(queue: CheckedQueue) -> None:
    ids = queue.enqueue("mine", "of another claim", "ready")
    claim = queue.dequeue_one().claim_id
    queue.dequeue_one()
    *others, row = queue.call(
        "complete_and_dequeue",
        claim_id=claim,
        message_ids=[ids[1], ids[0], ids[2], 9223372036854775807, -1],
    )
    assert [stale(other) for other in others] == [ids[1], ids[2], 9223372036854775807, -1]
    assert {other.claim_id for other in others} == {claim}
    assert (row.outcome, row.message_id) == ("leased", ids[2])
    assert [queue.state_of(one) for one in ids] == [None, "leased", "leased"]


@pytest.mark.promise("P08")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("named", [False, True])
def test_stale_claim_still_dequeues(queue: CheckedQueue, named: bool, archive_days: int) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue("a", "b")
    claim = queue.dequeue(2)[0].claim_id
    queue.pass_seconds(100)
    queue.call("reap")
    queue.enqueue("c")
    given = {"message_ids": ids} if named else {}
    *others, row = queue.call("complete_and_dequeue", claim_id=claim, **given)
    assert [stale(other) for other in others] == (ids if named else [None])
    assert {other.claim_id for other in others} == {claim}
    assert (row.outcome, row.body, row.attempt) == ("leased", "a", 2)
    assert [queue.state_of(one) for one in ids] == ["leased", "ready"]


@pytest.mark.promise("P08")
def test_repeated_call_is_stale_and_dequeues_again(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c")
    claim = queue.dequeue_one().claim_id
    assert exchange(queue, claim) == ["b"]
    nothing, row = queue.call("complete_and_dequeue", claim_id=claim)
    assert stale(nothing) is None
    assert row.body == "c"
    [nothing] = queue.call("complete_and_dequeue", claim_id=claim)
    assert stale(nothing) is None
    assert queue.counts() == (0, 0, 2, 0)


@pytest.mark.promise("P08")
def test_claim_of_another_queue_is_not_completed(queue: CheckedQueue) -> None:
    other = queue.another()
    [message_id] = queue.enqueue("a")
    other.enqueue("b")
    claim = queue.dequeue_one().claim_id
    nothing, row = other.call("complete_and_dequeue", claim_id=claim)
    assert stale(nothing) is None
    assert row.body == "b"
    assert queue.state_of(message_id) == "leased"


@pytest.mark.promise("P08")
def test_expired_claim_can_complete_until_it_is_reaped(queue: CheckedQueue) -> None:
    [message_id, _] = queue.enqueue("a", "b")
    claim = queue.dequeue_one().claim_id
    queue.pass_seconds(100)
    assert exchange(queue, claim) == ["b"]
    assert queue.state_of(message_id) is None


@pytest.mark.promise("P12")
@pytest.mark.parametrize("size", [1, 2])
def test_completed_messages_release_their_dedup_keys(queue: CheckedQueue, size: int) -> None:
    for key in ("k1", "k2"):
        queue.enqueue("a", dedup_key=key)
    claim = queue.dequeue(size)[0].claim_id
    assert len(exchange(queue, claim)) == 2 - size
    found = [queue.call_one("enqueue", dedup_key=key).outcome for key in ("k1", "k2")]
    assert found == ["enqueued"] * size + ["duplicate"] * (2 - size)


def test_paused_queue_completes_and_leases_nothing(queue: CheckedQueue) -> None:
    [message_id, _] = queue.enqueue("a", "b")
    claim = queue.dequeue_one().claim_id
    queue.call("pause_queue")
    assert exchange(queue, claim) == []
    assert queue.state_of(message_id) is None
    [nothing] = queue.call("complete_and_dequeue", claim_id=claim)
    assert stale(nothing) is None
    queue.call("resume_queue")
    assert queue.take() == ["b"]


@pytest.mark.promise("P28")
@pytest.mark.requires("limits")
@pytest.mark.parametrize("size", [1, 3])
def test_completing_frees_max_leased_for_the_same_call(queue: CheckedQueue, size: int) -> None:
    queue.call("alter_queue", max_leased=3)
    queue.enqueue(*"abcdefgh")
    claim = queue.dequeue(size)[0].claim_id
    assert len(queue.dequeue(MORE_THAN_ENOUGH)) == 3 - size
    assert exchange(queue, claim, batch_size=MORE_THAN_ENOUGH) == list("abcdefgh"[3 : 3 + size])
    nothing = queue.call_one("complete_and_dequeue", claim_id=claim)
    assert stale(nothing) is None
    assert queue.counts()[2] == 3


@pytest.mark.promise("P29")
@pytest.mark.requires("limits")
def test_completed_messages_count_for_the_rate_limit(queue: CheckedQueue) -> None:
    queue.call("alter_queue", rate_limit=3, rate_seconds=60)
    queue.enqueue(*"abcdef")
    claim = queue.dequeue(2)[0].claim_id
    rows = queue.call("complete_and_dequeue", claim_id=claim, batch_size=MORE_THAN_ENOUGH)
    assert bodies(rows) == ["c"]
    assert exchange(queue, rows[0].claim_id) == []
    queue.pass_seconds(61)
    assert len(queue.dequeue(MORE_THAN_ENOUGH)) == 3


@pytest.mark.promise("P28", "P15")
@pytest.mark.requires("limits")
def test_refused_old_snapshot_completes_nothing(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.call("alter_queue", max_leased=2)
    [message_id, *_] = queue.enqueue(*"abcd")
    claim = queue.dequeue_one().claim_id
    dialect = dialect_of(queue.connection)
    dialect.begin(queue.connection, "repeatable read")
    dialect.execute(queue.connection, "select count(*) from rowq.queue")
    assert len(elsewhere.dequeue()) == 1
    if dialect.sees_newer:
        assert exchange(queue, claim, batch_size=MORE_THAN_ENOUGH) == ["c"]
    else:
        queue.refused("RQ713", "complete_and_dequeue", claim_id=claim)
    dialect.rollback(queue.connection)
    assert queue.state_of(message_id) == "leased"
    assert exchange(queue, claim, batch_size=MORE_THAN_ENOUGH) == ["c"]


@pytest.mark.promise("P21")
@pytest.mark.requires("groups")
@pytest.mark.parametrize("size", [1, MORE_THAN_ENOUGH])
def test_completing_frees_the_group_for_the_same_call(queue: CheckedQueue, size: int) -> None:
    queue.enqueue("a1", "a2", "a3", group_key="a")
    queue.enqueue("b1", "b2", group_key="b")
    rows = queue.dequeue(MORE_THAN_ENOUGH)
    assert bodies(rows) == ["a1", "b1"]
    rows = queue.call(
        "complete_and_dequeue",
        claim_id=rows[0].claim_id,
        message_ids=[rows[0].message_id],
        batch_size=size,
    )
    assert bodies(rows) == ["a2"]
    assert exchange(queue, rows[0].claim_id, batch_size=size) == ["a3"]


@pytest.mark.promise("P26")
@pytest.mark.requires("predecessors")
@pytest.mark.parametrize("size", [1, 2])
def test_completing_resumes_successors_for_the_same_call(queue: CheckedQueue, size: int) -> None:
    ids = queue.enqueue(*"ab"[:size])
    claim = queue.dequeue(size)[0].claim_id
    queue.enqueue("successor", predecessor_ids=ids)
    assert exchange(queue, claim, batch_size=size) == ["successor"]


@pytest.mark.promise("P05", "P26")
@pytest.mark.requires("predecessors")
def test_resumed_successor_of_a_higher_priority_comes_first(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b")
    claim = queue.dequeue_one().claim_id
    queue.enqueue("successor", predecessor_ids=ids[:1], priority=0)
    assert exchange(queue, claim, batch_size=2) == ["successor", "b"]


@pytest.mark.promise("P19")
def test_completed_messages_are_archived(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=5)
    ids = queue.enqueue("a", "b", "c")
    rows = queue.dequeue(2)
    assert exchange(queue, rows[0].claim_id, message_ids=ids[:1]) == ["c"]
    assert [queue.state_of(one) for one in ids] == ["completed", "leased", "leased"]
    assert exchange(queue, rows[0].claim_id) == []
    assert queue.call_one("archive").archived == 2
    assert [queue.state_of(one) for one in ids] == ["completed", "completed", "leased"]


@pytest.mark.promise("P37")
def test_completion_and_lease_are_in_the_history(queue: CheckedQueue) -> None:
    queue.call("alter_queue", history_days=5)
    ids = queue.enqueue("a", "b", "c")
    rows = queue.dequeue(2, worker_name="w1")
    given = {"claim_id": rows[0].claim_id, "worker_name": "w2"}
    assert exchange(queue, **given, message_ids=ids[1:2]) == ["c"]
    assert [past(queue, one) for one in ids] == [
        [(1, "w1", None, None)],
        [(1, "w1", "completed", None)],
        [(1, "w2", None, None)],
    ]
    assert exchange(queue, **given) == []
    assert past(queue, ids[0]) == [(1, "w1", "completed", None)]


@pytest.mark.promise("P32")
@pytest.mark.requires("results")
def test_results_of_completed_messages_are_kept(queue: CheckedQueue) -> None:
    queue.call("alter_queue", result_seconds=3600)
    ids = queue.enqueue(*"abcde")
    claim = queue.dequeue(3)[0].claim_id
    rows = queue.call(
        "complete_and_dequeue",
        claim_id=claim,
        message_ids=[ids[2], ids[4], ids[0]],
        results=[{"number": 2}, "stale", None],
    )
    assert stale(rows[0]) == ids[4]
    assert bodies(rows[1:]) == ["d"]
    assert exchange(queue, claim) == ["e"]
    assert exchange(queue, rows[1].claim_id, results=["alone"]) == []
    assert [end_of(queue, one) for one in ids] == [
        ("completed", None, None),
        ("completed", None, None),
        ("completed", {"number": 2}, None),
        ("completed", "alone", None),
        ("leased", None, None),
    ]


@pytest.mark.promise("P34")
@pytest.mark.requires("cancel")
def test_message_with_a_requested_cancel_is_completed(queue: CheckedQueue) -> None:
    queue.call("alter_queue", history_days=5)
    ids = queue.enqueue("a", "b", "c")
    claim = queue.dequeue(2)[0].claim_id
    queue.call("cancel", message_ids=ids[:2], include_leased=True)
    assert exchange(queue, claim, message_ids=ids[:1]) == ["c"]
    assert exchange(queue, claim) == []
    assert [past(queue, one)[0][2] for one in ids[:2]] == ["completed", "completed"]


INVALID: dict[str, dict[str, Any]] = {
    "batch_size 0": {"batch_size": 0},
    "batch_size 1001": {"batch_size": 1001},
    "batch_size null": {"batch_size": None},
    "lease_seconds 0": {"lease_seconds": 0},
    "lease_seconds 86401": {"lease_seconds": 86401},
    "worker_name": {"worker_name": "x" * 201},
    "message_ids null": {"message_ids": [1, None]},
    "message_ids nested": {"message_ids": [[1, 2], [3, 4]]},
    "message_ids 10001": {"message_ids": [1] * 10001},
    "results scalar": {"results": 1},
    "results two": {"results": [1, 2]},
    "results long": {"results": ["x" * 1_048_577]},
}


@pytest.mark.promise("P15")
@pytest.mark.parametrize("settings", [{}, {"archive_days": 1}, {"result_seconds": 60}], ids=str)
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("invalid", INVALID)
def test_refused_call_completes_and_leases_nothing(
    queue: CheckedQueue, invalid: str, size: int, settings: dict[str, Any]
) -> None:
    queue.call("alter_queue", **settings)
    queue.enqueue("a", "b", "c")
    claim = queue.dequeue(size)[0].claim_id
    before = queue.stored()
    given: dict[str, Any] = {"batch_size": size} | INVALID[invalid]
    text = queue.refused("RQ711", "complete_and_dequeue", claim_id=claim, **given)
    assert ("result" if "results" in given else invalid.split()[0]) in text
    assert queue.stored() == before
    assert len(exchange(queue, claim, batch_size=MORE_THAN_ENOUGH)) == 3 - size


@pytest.mark.promise("P08", "P15")
@pytest.mark.parametrize("settings", [{}, {"result_seconds": 60}], ids=str)
@pytest.mark.parametrize("invalid", INVALID)
def test_stale_claim_with_an_invalid_argument_is_refused(
    queue: CheckedQueue, invalid: str, settings: dict[str, Any]
) -> None:
    queue.call("alter_queue", **settings)
    queue.enqueue("a")
    given = INVALID[invalid]
    queue.refused("RQ711", "complete_and_dequeue", claim_id=9_000_000_000, **given)
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15", "P32")
@pytest.mark.requires("results")
def test_results_of_a_claim_with_several_messages_need_ids(queue: CheckedQueue) -> None:
    queue.call("alter_queue", result_seconds=60)
    queue.enqueue("a", "b", "c")
    claim = queue.dequeue(2)[0].claim_id
    queue.refused("RQ711", "complete_and_dequeue", claim_id=claim, results=["a"])
    assert queue.counts() == (1, 0, 2, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("given", [{}, {"message_ids": [1]}, {"message_ids": []}], ids=str)
def test_null_claim_is_refused_and_leases_nothing(
    queue: CheckedQueue, given: dict[str, Any]
) -> None:
    queue.enqueue("a")
    text = queue.refused("RQ711", "complete_and_dequeue", claim_id=None, **given)
    assert "claim_id" in text
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15")
def test_unknown_queue_is_refused(connection: Connection, queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    given = {"queue_name": f"{queue.name[:80]} unknown", "claim_id": claim}
    refused(connection, "RQ701", "complete_and_dequeue", **given)
    assert queue.state_of(message_id) == "leased"


@pytest.mark.promise("P07", "P17")
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("settings", [{}, {"archive_days": 1, "history_days": 1}], ids=str)
def test_rolled_back_call_keeps_the_claim_and_the_next_messages(
    connection: Connection, queue_name: str, size: int, settings: dict[str, int]
) -> None:
    queue = new_queue(connection, queue_name, **settings)
    queue.enqueue(*"abcdef")
    rows = queue.dequeue(size)
    before = queue.stored()
    with rolled_back(queue.connection):
        first = exchange(queue, rows[0].claim_id, batch_size=size)
    assert queue.stored() == before
    assert [queue.state_of(row.message_id) for row in rows] == ["leased"] * size
    assert exchange(queue, rows[0].claim_id, batch_size=size) == first


@pytest.mark.promise("P17")
def test_call_does_not_commit_the_callers_transaction(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    with rolled_back(queue.connection):
        queue.enqueue("unborn")
        assert exchange(queue, claim) == ["unborn"]
    assert elsewhere.dequeue() == []
