"""Messages with predecessors: when they resume, and how a death propagates."""

import random
from typing import Any

import pytest

from tests.helpers.calls import Row, bodies, call, outcomes, rolled_back
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.requires("predecessors")


def send(queue: CheckedQueue, body: str, *after: int, **options: Any) -> int:
    """Enqueue a message with predecessors and return its id."""
    [message_id] = queue.enqueue(body, predecessor_ids=list(after), **options)
    return message_id


def finish_all(queue: CheckedQueue) -> list[str]:
    """Dequeue and complete messages one by one until the queue is empty; return their bodies."""
    done = []
    while rows := queue.dequeue(1):
        queue.call("complete", claim_id=rows[0].claim_id)
        done.append(str(rows[0].body))
    return done


def link_rows(queue: CheckedQueue) -> dict[str, int]:
    """Return the number of rows in each table of blocked messages."""
    stored = queue.stored()
    return {table: stored[table] for table in ("blocked", "successor", "deferred")}


NOTHING = {"blocked": 0, "successor": 0, "deferred": 0}
ENDS = ["complete", "cancel", "purge_queue"]


@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_message_is_blocked_until_its_predecessor_completes(
    queue: CheckedQueue, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    [first] = queue.enqueue("first")
    second = send(queue, "second", first)
    row = queue.message(second)
    assert (row.state, row.waits_for) == ("blocked", first)
    [other] = queue.enqueue("other")
    assert queue.call_one("queue_stats").blocked == 1
    rows = queue.dequeue(10)
    assert bodies(rows) == ["first", "other"]
    queue.call("complete", claim_id=rows[0].claim_id, message_ids=[other])
    assert queue.take() == []
    queue.call("complete", claim_id=rows[0].claim_id)
    row = queue.message(second)
    assert (row.state, row.waits_for) == ("ready", None)
    assert queue.take() == ["second"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P26")
def test_resumed_message_goes_to_the_front_of_its_priority(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    send(queue, "second", first, priority=5)
    queue.enqueue("later")
    queue.enqueue("sooner", priority=4)
    assert finish_all(queue) == ["sooner", "first", "second", "later"]


@pytest.mark.promise("P25")
def test_message_waits_for_all_its_predecessors(queue: CheckedQueue) -> None:
    ids = queue.enqueue("1", "2", "3")
    last = send(queue, "last", ids[1], ids[2], ids[0], ids[1])
    assert queue.message(last).waits_for == ids[2]
    rows = queue.dequeue(3)
    for body in ("2", "3"):
        [row] = [row for row in rows if row.body == body]
        queue.call("complete", claim_id=row.claim_id, message_ids=[row.message_id])
        assert queue.take() == []
    assert queue.message(last).waits_for == ids[0]
    queue.call("complete", claim_id=rows[0].claim_id)
    assert queue.take() == ["last"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P25")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_ended_or_unknown_predecessors_do_not_block(queue: CheckedQueue, archive_days: int) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    [done] = queue.enqueue("done")
    queue.finish_next()
    send(queue, "at once", done)
    send(queue, "none")
    send(queue, "unknown", -5, 0)
    assert queue.take() == ["at once", "none", "unknown"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P25")
def test_thousands_of_unarchived_predecessors_do_not_block(
    queue: CheckedQueue,
) -> None:
    queue.call("alter_queue", archive_days=1)
    count, step = 2000, 10
    rows = queue.call("enqueue_batch", messages=[{"body": "x"}] * (count + 1))
    first, *ids = [row.message_id for row in rows]
    claims = [queue.dequeue(1)[0].claim_id]
    while rows := queue.dequeue(step):
        queue.call("complete", claim_id=rows[0].claim_id)
    last = send(queue, "last", first, *ids)
    row = queue.message(last)
    assert (row.state, row.waits_for) == ("blocked", first)
    send(queue, "at once", *ids)
    assert queue.take() == ["at once"]
    queue.call("complete", claim_id=claims[0])
    assert queue.take() == ["last"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("archive_days", [0, 1])
def test_successor_resumes_however_its_predecessor_ends(
    queue: CheckedQueue, end: str, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    [first] = queue.enqueue("first")
    if end == "complete":
        send(queue, "second", first)
        queue.finish_next()
    elif end == "cancel":
        send(queue, "second", first)
        assert outcomes(queue.call("cancel", message_ids=[first])) == {first: "cancelled"}
    else:
        row = queue.dequeue_one()
        queue.call("fail_now", claim_id=row.claim_id)
        second = send(queue, "second", first)
        assert queue.state_of(second) == "blocked"
        assert queue.call_one("purge_queue").removed == 1, "the blocked message is purged"
        send(queue, "second", first)
        third = send(queue, "third")
        queue.call("cancel", message_ids=[third])
        queue.call("cancel", message_ids=[first])
    assert queue.finish_next() == "second"
    queue.call("archive")
    queue.call("maintain")
    assert link_rows(queue) == NOTHING


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P26")
@pytest.mark.parametrize("count", [5, 2500])
def test_thousands_of_successors_resume(queue: CheckedQueue, count: int) -> None:
    [first] = queue.enqueue("first")
    queue.call("enqueue_batch", messages=[{"body": "x", "predecessor_ids": [first]}] * count)
    queue.finish_next()
    resumed = 0
    for _ in range(3):
        while rows := queue.dequeue(1000):
            queue.call("complete", claim_id=rows[0].claim_id)
            resumed += len(rows)
        queue.call("maintain")
    assert resumed == count
    assert link_rows(queue) == NOTHING


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P25")
@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_message_waits_for_hundreds_of_predecessors(queue: CheckedQueue, order: str) -> None:
    count = 500
    rows = queue.call("enqueue_batch", messages=[{"body": "x"}] * count)
    ids = [row.message_id for row in rows]
    last = send(queue, "last", *ids)
    claim = queue.dequeue(count)[0].claim_id
    if order == "descending":
        ids.reverse()
    elif order == "random":
        random.Random(7).shuffle(ids)
    for number in range(0, count, 100):
        assert queue.state_of(last) == "blocked"
        for message_id in ids[number : number + 100]:
            queue.call("complete", claim_id=claim, message_ids=[message_id])
    assert queue.take() == ["last"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P25", "P26")
def test_enqueue_batch_stores_a_workflow(queue: CheckedQueue) -> None:
    messages = [
        {"body": "begin"},
        {"body": "left", "predecessor_positions": [1]},
        {"body": "right", "predecessor_positions": [1], "delay_seconds": 0},
        {"body": "end", "predecessor_positions": [3, 2]},
        {"body": "beside", "predecessor_positions": []},
    ]
    rows = queue.call("enqueue_batch", messages=messages)
    assert [row.outcome for row in rows] == ["enqueued"] * 5
    assert queue.call_one("queue_stats").blocked == 3
    assert finish_all(queue) == ["begin", "left", "right", "end", "beside"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P25")
def test_predecessor_positions_and_ids_add_up(
    queue: CheckedQueue,
) -> None:
    [there] = queue.enqueue("there", dedup_key="key")
    [before] = queue.enqueue("before")
    messages = [
        {"body": "again", "dedup_key": "key"},
        {"body": "mine", "dedup_key": "other"},
        {"body": "twice", "dedup_key": "other"},
        {"body": "last", "predecessor_positions": [1, 2, 3], "predecessor_ids": [before]},
        {"body": "not added", "dedup_key": "key", "predecessor_positions": [1]},
    ]
    rows = queue.call("enqueue_batch", messages=messages)
    assert [row.outcome for row in rows] == [
        "duplicate", "enqueued", "duplicate", "enqueued", "duplicate",
    ]  # fmt: skip
    assert rows[0].message_id == there
    assert finish_all(queue) == ["there", "before", "mine", "last"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P26", "P27")
def test_batch_callback_runs_after_its_messages(queue: CheckedQueue) -> None:
    steps = [{"body": str(number)} for number in (1, 2, 3)]
    callback = {
        "body": "all done", "predecessor_positions": [1, 2, 3], "on_predecessor_dead": "continue",
    }  # fmt: skip
    queue.call("enqueue_batch", messages=[*steps, callback])
    assert queue.finish_next() == "1"
    assert queue.finish_next("fail_now", error="broken") == "2"
    assert queue.finish_next() == "3"
    assert queue.take() == ["all done"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P27")
@pytest.mark.parametrize("death", ["fail_now", "retry_later", "reap"])
@pytest.mark.parametrize("asked", ["hold", "continue", "fail", None])
def test_successor_follows_on_predecessor_dead(
    queue: CheckedQueue, death: str, asked: str | None
) -> None:
    queue.call("alter_queue", max_attempts=1)
    [first] = queue.enqueue("first", dedup_key="key")
    second = send(queue, "second", first, on_predecessor_dead=asked)
    row = queue.dequeue_one()
    if death == "reap":
        queue.pass_seconds(60)
        queue.call("reap")
    else:
        queue.call(death, claim_id=row.claim_id)
    late = send(queue, "late", first, on_predecessor_dead=asked)
    expected = {"continue": "ready", "fail": "dead"}.get(asked or "hold", "blocked")
    assert [queue.state_of(second), queue.state_of(late)] == [expected] * 2
    if expected == "dead":
        row = queue.message(second)
        assert (row.last_error, row.attempt) == (f"predecessor {first} is dead", 0)
        assert link_rows(queue) == NOTHING
        queue.call("reset", message_ids=[second])
        assert queue.finish_next() == "second"
    elif expected == "blocked":
        assert waiting(queue) == ("warning", 2)
        queue.call("reset")
        assert waiting(queue) == ("ok", 0)
        assert finish_all(queue) == ["first", "second", "late"]
    else:
        assert finish_all(queue) == ["second", "late"]
    assert link_rows(queue) == NOTHING


def waiting(queue: CheckedQueue) -> tuple[str, float]:
    """Return the status and value of the health check waits_for_dead."""
    [row] = [
        row
        for row in call(queue.connection, "health")
        if (row.check_name, row.queue_name) == ("waits_for_dead", queue.name)
    ]
    return row.status, row.value


@pytest.mark.promise("P27")
def test_death_propagates_down_the_tree_until_hold_or_continue(queue: CheckedQueue) -> None:
    messages: list[dict[str, object]] = [{"body": "0"}]
    messages += [
        {"body": str(position), "predecessor_positions": [position], "on_predecessor_dead": "fail"}
        for position in range(1, 50)
    ]
    messages.append({"body": "held", "predecessor_positions": [50]})
    messages.append(
        {"body": "continues", "predecessor_positions": [50], "on_predecessor_dead": "continue"}
    )
    rows = queue.call("enqueue_batch", messages=messages)
    queue.finish_next("fail_now", error="broken")
    states = [queue.state_of(row.message_id) for row in rows]
    assert states == ["dead"] * 50 + ["blocked", "ready"]
    assert queue.message(rows[49].message_id).last_error == (
        f"predecessor {rows[48].message_id} is dead"
    )
    assert link_rows(queue) == {"blocked": 1, "successor": 1, "deferred": 0}


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P27")
def test_maintain_propagates_a_death_to_thousands(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    wide = [{"predecessor_ids": [first], "on_predecessor_dead": "fail"}] * 1500
    deep = [
        {"predecessor_positions": [position], "on_predecessor_dead": "fail"}
        for position in range(1, 1501)
    ]
    queue.call("enqueue_batch", messages=[*wide, *deep])
    queue.finish_next("fail_now")
    for _ in range(6):
        queue.call("maintain", batch_size=10000)
    assert queue.call_one("queue_stats").dead == 3001
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P26")
def test_cancel_removes_a_blocked_message_and_resumes_its_own(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    second = send(queue, "second", first)
    third = send(queue, "third", second)
    assert outcomes(queue.call("cancel", message_ids=[second])) == {second: "cancelled"}
    assert queue.state_of(third) == "ready"
    assert sorted(finish_all(queue)) == ["first", "third"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P11", "P25")
def test_delayed_message_waits_for_its_time_and_predecessor(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    late = send(queue, "late", first, delay_seconds=60)
    row = queue.message(late)
    assert (row.state, row.due_at is None) == ("blocked", False)
    queue.finish_next()
    assert queue.state_of(late) == "delayed"
    queue.pass_seconds(61)
    queue.call("promote")
    assert queue.finish_next() == "late"
    [first] = queue.enqueue("first", delay_seconds=30)
    send(queue, "late", first, delay_seconds=10)
    queue.pass_seconds(31)
    queue.call("promote")
    assert finish_all(queue) == ["first", "late"]


@pytest.mark.requires("groups")
@pytest.mark.promise("P21", "P22", "P25")
def test_blocked_message_joins_its_group_when_it_resumes(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    waits = send(queue, "waits", first, group_key="a")
    queue.enqueue("a1", "a2", group_key="a")
    rows = queue.dequeue(10)
    assert bodies(rows) == ["first", "a1"]
    queue.call("complete", claim_id=rows[0].claim_id, message_ids=[first])
    row = queue.message(waits)
    assert (row.state, row.waits_for) == ("blocked", None), "it waits for its slot"
    queue.call("complete", claim_id=rows[0].claim_id)
    assert finish_all(queue) == ["waits", "a2"]
    stored = queue.stored()
    assert (stored["group_slot"], stored["group_waiting"]) == (0, 0)
    assert link_rows(queue) == NOTHING


@pytest.mark.requires("groups")
@pytest.mark.promise("P22", "P27")
def test_message_that_fails_while_blocked_has_no_slot(queue: CheckedQueue) -> None:
    queue.call("alter_queue", group_after_dead="hold")
    [first] = queue.enqueue("first")
    failed = send(queue, "failed", first, group_key="a", on_predecessor_dead="fail")
    queue.enqueue("a1", "a2", group_key="a")
    queue.finish_next("fail_now")
    assert queue.state_of(failed) == "dead"
    assert queue.finish_next() == "a1"
    queue.call("reset", message_ids=[failed])
    assert finish_all(queue) == ["a2", "failed"]
    assert queue.stored()["group_slot"] == 0


@pytest.mark.promise("P12")
def test_blocked_message_holds_its_dedup_key(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    second = send(queue, "second", first, dedup_key="key")
    row = queue.call_one("enqueue", body="again", dedup_key="key", predecessor_ids=[first])
    assert (row.message_id, row.outcome) == (second, "duplicate")
    assert finish_all(queue) == ["first", "second"]
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P07", "P25")
def test_rolled_back_end_resumes_no_successor(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    second = send(queue, "second", first)
    before = queue.stored()
    with rolled_back(queue.connection):
        assert finish_all(queue) == ["first", "second"]
        send(queue, "third", first)
    assert queue.stored() == before
    assert queue.message(second).waits_for == first
    assert finish_all(queue) == ["first", "second"]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"predecessor_ids": [2**62]}, "predecessor_ids must name existing messages"),
        ({"predecessor_ids": list(range(10001))}, "predecessor_ids must be a list of at most"),
        ({"on_predecessor_dead": "stop"}, "on_predecessor_dead must be hold, continue or fail"),
        ({"on_predecessor_dead": ""}, "on_predecessor_dead must be hold, continue or fail"),
    ],
)
def test_enqueue_refuses_invalid_predecessors(
    queue: CheckedQueue, options: dict[str, object], error: str
) -> None:
    assert error in queue.refused("RQ711", "enqueue", body="x", **options)
    text = queue.refused("RQ711", "enqueue_batch", messages=[{"body": "x"}, options])
    assert error in text
    assert "(message 2)" in text
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"predecessor_positions": [2]}, "earlier positions in the batch"),
        ({"predecessor_positions": [0]}, "earlier positions in the batch"),
        ({"predecessor_positions": [1, None]}, "earlier positions in the batch"),
        ({"predecessor_positions": [[1]]}, "earlier positions in the batch"),
        ({"predecessor_positions": ["x"]}, "predecessor_positions"),
        ({"predecessor_positions": [10**30]}, "predecessor_positions"),
        ({"predecessor_positions": 1}, "predecessor_positions must be a"),
        ({"predecessor_ids": [None]}, "predecessor_ids must be a list"),
        ({"predecessor_ids": [1.5]}, "predecessor_ids"),
        ({"predecessor_ids": {"a": 1}}, "predecessor_ids must be a"),
        ({"on_predecessor_dead": 1}, "on_predecessor_dead must be a"),
    ],
)
def test_enqueue_batch_refuses_invalid_predecessors(
    queue: CheckedQueue, options: dict[str, object], error: str
) -> None:
    text = queue.refused("RQ711", "enqueue_batch", messages=[{"body": "x"}, options, {"body": "x"}])
    assert error in text
    assert "(message 2)" in text
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P02")
def test_drop_queue_with_force_removes_blocked_messages(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    send(queue, "second", first)
    queue.refused("RQ704", "drop_queue")
    queue.call("drop_queue", force=True)
    queue.call("create_queue")
    assert set(queue.stored().values()) == {0}


def test_purge_removes_messages_blocked_by_a_leased_one(queue: CheckedQueue) -> None:
    [first, leased] = queue.enqueue("first", "leased")
    send(queue, "second", first)
    third = send(queue, "third", leased)
    rows: list[Row] = queue.dequeue(2)
    queue.call("release", claim_id=rows[0].claim_id, message_ids=[first])
    assert queue.call_one("purge_queue", max_messages=1).removed == 1
    assert queue.call_one("purge_queue").removed == 2
    assert queue.call("get_message", message_id=third) == []
    queue.call("complete", claim_id=rows[0].claim_id)
    assert queue.stored()["message"] == 0
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P27")
def test_failed_batch_message_propagates_within_the_batch(
    queue: CheckedQueue,
) -> None:
    [dead] = queue.make_dead("dead")
    messages = [
        {"body": "1", "predecessor_ids": [dead], "on_predecessor_dead": "fail"},
        {"body": "2", "predecessor_positions": [1], "on_predecessor_dead": "fail"},
        {"body": "3", "predecessor_positions": [2], "on_predecessor_dead": "continue"},
        {"body": "4", "predecessor_positions": [1]},
    ]
    rows = queue.call("enqueue_batch", messages=messages)
    states = [queue.state_of(row.message_id) for row in rows]
    assert states == ["dead", "dead", "ready", "blocked"]
    queue.call("cancel", message_ids=[rows[0].message_id])
    assert sorted(finish_all(queue)) == ["3", "4"]
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P27")
def test_health_ignores_cancelled_successors_of_a_dead_message(
    queue: CheckedQueue,
) -> None:
    [dead] = queue.make_dead("dead")
    waits = send(queue, "waits", dead)
    assert waiting(queue) == ("warning", 1)
    queue.call("cancel", message_ids=[waits])
    assert waiting(queue) == ("ok", 0)


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize("finish", ["complete", "fail_now"])
def test_thousands_of_ended_predecessors_delay_no_other_message(
    queue: CheckedQueue, finish: str
) -> None:
    """A call checks a limited number of predecessors; maintain checks the rest."""
    waiting, named = 60, 3000
    rows = queue.call("enqueue_batch", messages=[{"delay_seconds": 1000}] * named)
    gone = [row.message_id for row in rows]
    [victim] = queue.enqueue("victim", priority=0)
    each = {"predecessor_ids": [*gone, victim], "on_predecessor_dead": "continue"}
    queue.call("enqueue_batch", messages=[{"body": "slow", **each}] * waiting)
    send(queue, "honest", victim, on_predecessor_dead="continue", priority=0)
    assert {row.outcome for row in queue.call("cancel", message_ids=gone)} == {"cancelled"}
    [row] = queue.dequeue(1)
    assert row.message_id == victim
    queue.call(finish, claim_id=row.claim_id)
    assert queue.call_one("queue_stats").blocked >= waiting // 2, "not all in one call"
    assert queue.take() == ["honest"]
    calls = 0
    while queue.call_one("queue_stats").blocked:
        queue.tick()
        queue.call("maintain")
        calls += 1
        assert calls <= waiting
    assert finish_all(queue) == ["slow"] * waiting
    queue.tick()
    queue.call("maintain")
    assert link_rows(queue) == NOTHING


@pytest.mark.promise("P26")
def test_complete_resumes_1000_successors_per_call(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*(f"first {number}" for number in range(3)))
    for first in ids:
        waiting = [{"body": "next", "predecessor_ids": [first]}] * 500
        queue.call("enqueue_batch", messages=waiting)
    rows = queue.dequeue(3)
    assert [row.message_id for row in rows] == ids
    queue.call("complete", claim_id=rows[0].claim_id)
    stats = queue.call_one("queue_stats")
    assert (stats.ready, stats.blocked) == (1000, 500)
    queue.tick()
    queue.call("maintain")
    stats = queue.call_one("queue_stats")
    assert (stats.ready, stats.blocked) == (1500, 0)
