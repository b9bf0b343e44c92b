"""Messages with a group_key: order, limit and turns."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tests.helpers.calls import Row, bodies, call, outcomes, rolled_back
from tests.helpers.queues import CheckedQueue, Connect

pytestmark = pytest.mark.requires("groups")


def group_rows(queue: CheckedQueue) -> dict[str, int]:
    """Return the number of rows in each table of groups."""
    stored = queue.stored()
    return {table: stored[table] for table in ("group_slot", "group_waiting", "deferred")}


NOTHING = {"group_slot": 0, "group_waiting": 0, "deferred": 0}


@pytest.mark.promise("P21")
def test_group_delivers_one_message_at_a_time_in_order(queue: CheckedQueue) -> None:
    queue.enqueue("1", "2", "3", group_key="a")
    for number in ("1", "2", "3"):
        [row] = queue.dequeue(10)
        assert row.body == number
        assert queue.take() == []
        queue.call("complete", claim_id=row.claim_id)
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P21")
def test_enqueue_batch_keeps_the_order_of_each_group(queue: CheckedQueue) -> None:
    messages = [
        {"body": "a1", "group_key": "a"},
        {"body": "free", "group_key": None},
        {"body": "b1", "group_key": "b", "dedup_key": "key"},
        {"body": "a2", "group_key": "a"},
        {"body": "b2", "group_key": "b"},
        {"body": "twice", "group_key": "c", "dedup_key": "key"},
    ]
    rows = queue.call("enqueue_batch", messages=messages)
    assert [row.outcome for row in rows] == ["enqueued"] * 5 + ["duplicate"]
    assert queue.stored()["group_slot"] == 2
    [first, free, other] = queue.dequeue(10)
    assert (first.body, free.body, other.body) == ("a1", "free", "b1")
    queue.call("complete", claim_id=first.claim_id)
    assert queue.take() == ["a2", "b2"]


@pytest.mark.promise("P22")
@pytest.mark.parametrize("limit", [2, 5, 100])
def test_group_leases_at_most_group_limit_messages(queue: CheckedQueue, limit: int) -> None:
    queue.call("alter_queue", group_limit=limit)
    queue.call("enqueue_batch", messages=[{"body": "x", "group_key": "a"}] * (2 * limit + 1))
    left = 2 * limit + 1
    while rows := queue.dequeue(1000):
        assert len(rows) == min(left, limit)
        queue.call("complete", claim_id=rows[0].claim_id)
        left -= len(rows)
    assert left == 0
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P23")
def test_groups_take_turns(queue: CheckedQueue) -> None:
    queue.enqueue("a1", "a2", "a3", group_key="a")
    queue.enqueue("b1", "b2", group_key="b")
    queue.enqueue("c1", group_key="c")
    assert [queue.finish_next() for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_get_message_returns_waits_for_of_a_blocked_message(queue: CheckedQueue) -> None:
    first, second, third = queue.enqueue("1", "2", "3", group_key="a")
    [other] = queue.enqueue("other")

    def state(message_id: int) -> tuple[str, str | None, int | None]:
        row = queue.message(message_id)
        return row.state, row.group_key, row.waits_for

    assert state(first) == ("ready", "a", None)
    assert state(second) == ("blocked", "a", None)
    assert state(third) == ("blocked", "a", second)
    assert state(other) == ("ready", None, None)
    stats = queue.call_one("queue_stats")
    assert (stats.ready, stats.blocked) == (2, 2)
    queue.finish_next()
    assert state(second) == ("ready", "a", None)
    assert queue.call_one("queue_stats", max_count=1).blocked == 1


def test_archive_keeps_the_group_key(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    first, second = queue.enqueue("1", "2", group_key="a")
    queue.finish_next()
    assert queue.state_of(second) == "ready"
    queue.call("archive")
    row = queue.message(first)
    assert (row.state, row.group_key, row.waits_for) == ("completed", "a", None)


@pytest.mark.promise("P21", "P38")
@pytest.mark.parametrize("back", ["release", "snooze", "retry_later", "reap"])
def test_returned_message_keeps_its_position_in_the_group(queue: CheckedQueue, back: str) -> None:
    queue.enqueue("1", "2", group_key="a")
    row = queue.dequeue_one()
    if back == "reap":
        queue.pass_seconds(60)
        queue.call("reap")
    elif back in {"snooze", "retry_later"}:
        routine = "release" if back == "snooze" else back
        queue.call(routine, claim_id=row.claim_id, delay_seconds=5)
        assert queue.take() == [], "the group waits for its message"
        queue.pass_seconds(10)
        queue.call("promote")
    else:
        queue.call(back, claim_id=row.claim_id)
    assert queue.finish_next() == "1"
    assert queue.finish_next() == "2"
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P21")
@pytest.mark.parametrize("death", ["fail_now", "retry_later", "reap"])
def test_group_continues_after_a_dead_message(queue: CheckedQueue, death: str) -> None:
    queue.call("alter_queue", max_attempts=1)
    dead, _ = queue.enqueue("1", "2", group_key="a")
    row = queue.dequeue_one()
    if death == "reap":
        queue.pass_seconds(60)
        queue.call("reap")
    else:
        queue.call(death, claim_id=row.claim_id)
    assert queue.state_of(dead) == "dead"
    assert queue.finish_next() == "2"
    assert group_rows(queue) == NOTHING
    assert outcomes(queue.call("reset")) == {dead: "reset"}
    assert queue.finish_next() == "1"
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P21")
def test_reset_message_waits_behind_a_leased_one_of_its_group(queue: CheckedQueue) -> None:
    [dead] = queue.make_dead("1", group_key="a")
    queue.enqueue("2", "3", group_key="a")
    row = queue.dequeue_one()
    assert row.body == "2"
    queue.call("reset")
    assert queue.state_of(dead) == "blocked"
    assert queue.take() == []
    queue.call("complete", claim_id=row.claim_id)
    row = queue.dequeue_one()
    assert (row.body, row.attempt, row.last_error) == ("1", 1, "broken")
    queue.call("complete", claim_id=row.claim_id)
    assert queue.finish_next() == "3"


@pytest.mark.promise("P21")
@pytest.mark.parametrize("end", ["reset", "cancel", "purge_queue"])
@pytest.mark.parametrize("archive_days", [0, 1])
def test_dead_message_holds_its_group_with_group_after_dead_hold(
    queue: CheckedQueue, end: str, archive_days: int
) -> None:
    queue.call("alter_queue", group_after_dead="hold", archive_days=archive_days)
    [dead] = queue.make_dead("1", group_key="a")
    queue.enqueue("2", "3", group_key="a")
    [free] = queue.make_dead("no group")
    queue.call("maintain")
    assert queue.take() == []
    if end == "reset":
        queue.call("reset", message_ids=[dead])
        assert queue.finish_next() == "1"
    elif end == "cancel":
        assert outcomes(queue.call("cancel", message_ids=[dead, free])) == {
            dead: "cancelled",
            free: "cancelled",
        }
    else:
        assert queue.call_one("purge_queue", include_dead=True).removed == 4
        assert group_rows(queue) == NOTHING
        return
    assert queue.finish_next() == "2"
    assert queue.finish_next() == "3"
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P21", "P24")
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("archive_days", [0, 1])
def test_cancelled_message_is_skipped_by_its_group(
    queue: CheckedQueue, position: int, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue("0", "1", "2", group_key="a")
    assert outcomes(queue.call("cancel", message_ids=[ids[position]])) == {
        ids[position]: "cancelled"
    }
    rest = [body for body in "012" if body != str(position)]
    assert [queue.finish_next() for _ in rest] == rest
    assert group_rows(queue) == NOTHING


def test_cancel_removes_a_group_except_its_leased_message(queue: CheckedQueue) -> None:
    ids = queue.enqueue("0", "1", "2", group_key="a")
    ids += queue.enqueue("late", group_key="a", delay_seconds=60)
    row = queue.dequeue_one()
    done = outcomes(queue.call("cancel", message_ids=ids))
    assert list(done.values()) == ["leased"] + ["cancelled"] * 3
    queue.call("complete", claim_id=row.claim_id)
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P24")
def test_purge_queue_removes_messages_waiting_in_groups(queue: CheckedQueue) -> None:
    queue.enqueue("0", "1", "2", group_key="a")
    queue.enqueue("3", "4", group_key="b")
    queue.enqueue("5", group_key="b", delay_seconds=60)
    row = queue.dequeue_one()
    assert queue.call_one("purge_queue", max_messages=1).removed == 1
    assert queue.call_one("purge_queue").removed == 4
    assert group_rows(queue) == {"group_slot": 1, "group_waiting": 0, "deferred": 0}
    queue.call("complete", claim_id=row.claim_id)
    assert queue.stored()["message"] == 0
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P21")
def test_delayed_message_joins_its_group_when_due(queue: CheckedQueue) -> None:
    [late] = queue.enqueue("late", group_key="a", delay_seconds=60)
    queue.call("enqueue_batch", messages=[{"body": "later", "group_key": "a", "delay_seconds": 60}])
    queue.enqueue("1", "2", group_key="a")
    row = queue.dequeue_one()
    assert row.body == "1"
    queue.pass_seconds(100)
    queue.call("extend_lease", claim_id=row.claim_id, lease_seconds=1000)
    assert queue.call_one("promote").promoted == 2
    assert queue.state_of(late) == "blocked"
    queue.call("complete", claim_id=row.claim_id)
    assert [queue.finish_next() for _ in range(3)] == ["late", "later", "2"]
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P22")
def test_group_pauses_for_group_pause_seconds(queue: CheckedQueue) -> None:
    queue.call("alter_queue", group_pause_seconds=60)
    queue.enqueue("1", group_key="a")
    queue.enqueue("other", group_key="b")
    queue.finish_next()
    queue.enqueue("2", group_key="a")
    assert queue.finish_next() == "other"
    queue.call("maintain")
    assert queue.take() == []
    queue.pass_seconds(61)
    queue.call("maintain")
    assert queue.finish_next() == "2"
    queue.pass_seconds(61)
    queue.tick()
    queue.call("maintain")
    assert group_rows(queue) == NOTHING


def first_deliveries(queue: CheckedQueue, until: float) -> list[datetime]:
    """Work until a time, retry each message once; return the times of the first leases."""
    times = []
    while time.monotonic() < until:
        for row in queue.dequeue(2, lease_seconds=60):
            ids = {"claim_id": row.claim_id, "message_ids": [row.message_id]}
            if row.attempt == 1:
                times.append(row.lease_until - timedelta(seconds=60))
                queue.call("retry_later", **ids, delay_seconds=0)
            else:
                queue.call("complete", **ids)
        queue.call("maintain")
        time.sleep(0.02)
    return times


@pytest.mark.promise("P49")
def test_group_starts_group_limit_messages_per_group_pause_seconds(
    queue: CheckedQueue, connect: Connect
) -> None:
    pause = timedelta(seconds=0.4)
    queue.call("alter_queue", group_limit=3, group_pause_seconds=pause.total_seconds())
    queue.enqueue(*map(str, range(60)), group_key="a")
    workers = [queue.via(connect()) for _ in range(4)]
    until = time.monotonic() + 3
    with ThreadPoolExecutor(len(workers)) as pool:
        found = list(pool.map(lambda worker: first_deliveries(worker, until), workers))
    times = sorted(itertools.chain.from_iterable(found))
    assert len(times) >= 9
    assert all(later - first >= pause for first, later in zip(times, times[3:], strict=False))


@pytest.mark.promise("P22", "P24")
def test_raised_group_limit_applies_to_existing_groups(queue: CheckedQueue) -> None:
    queue.enqueue("1", "2", "3", "4", group_key="a")
    queue.enqueue("alone", group_key="b")
    row = queue.dequeue_one()
    queue.call("alter_queue", group_limit=3)
    queue.call("maintain")
    assert queue.take() == ["alone", "2", "3"]
    queue.call("complete", claim_id=row.claim_id)
    assert queue.take() == ["4"]


@pytest.mark.promise("P22")
def test_lowered_group_limit_applies_after_leased_messages_end(
    queue: CheckedQueue,
) -> None:
    queue.call("alter_queue", group_limit=3)
    queue.enqueue("1", "2", "3", "4", "5", "6", group_key="a")
    rows = queue.dequeue(3)
    queue.call("alter_queue", group_limit=1)
    queue.enqueue("7", group_key="a")
    assert queue.take() == []
    for row in rows:
        queue.call("complete", claim_id=row.claim_id, message_ids=[row.message_id])
    assert [queue.finish_next() for _ in range(4)] == ["4", "5", "6", "7"]
    assert group_rows(queue) == NOTHING


@pytest.mark.promise("P15")
@pytest.mark.parametrize("key", ["", "x" * 201])
def test_enqueue_refuses_an_invalid_group_key(queue: CheckedQueue, key: str) -> None:
    text = queue.refused("RQ711", "enqueue", body="x", group_key=key)
    assert "group_key must be 1 to 200 characters" in text
    text = queue.refused("RQ711", "enqueue_batch", messages=[{"body": "x", "group_key": key}])
    assert "group_key must be 1 to 200 characters (message 1)" in text
    assert "must be a JSON string" in queue.refused(
        "RQ711", "enqueue_batch", messages=[{"group_key": 1}]
    )
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"group_limit": 0}, "group_limit must be between 1 and 100, got 0"),
        ({"group_limit": 101}, "group_limit must be between 1 and 100, got 101"),
        ({"group_after_dead": "stop"}, "group_after_dead must be continue or hold, got stop"),
        ({"group_pause_seconds": -1.0}, "group_pause_seconds must be between 0 and 86400, got -1"),
        ({"group_pause_seconds": 86401.0}, "group_pause_seconds must be between 0 and 86400"),
    ],
)
def test_queue_refuses_invalid_group_settings(
    queue: CheckedQueue, settings: dict[str, object], error: str
) -> None:
    before = queue.call_one("queue_stats")
    assert error in queue.refused("RQ711", "alter_queue", **settings)
    assert queue.call_one("queue_stats") == before
    refused = queue.another()
    refused.call("drop_queue")
    assert error in refused.refused("RQ711", "create_queue", **settings)


def test_queue_stats_returns_the_group_settings(queue: CheckedQueue) -> None:
    def settings_of(row: Row) -> tuple[int, str, float]:
        return row.group_limit, row.group_after_dead, row.group_pause_seconds

    assert settings_of(queue.call_one("queue_stats")) == (1, "continue", 0)
    queue.call("alter_queue", group_limit=7, group_after_dead="hold", group_pause_seconds=0.5)
    assert settings_of(queue.call_one("queue_stats")) == (7, "hold", 0.5)
    other = queue.another(group_limit=2, group_after_dead="hold", group_pause_seconds=3.0)
    assert settings_of(other.call_one("queue_stats")) == (2, "hold", 3)


@pytest.mark.promise("P20", "P21")
def test_keys_are_exact_and_belong_to_their_queue(queue: CheckedQueue) -> None:
    keys = ["key", "Key", "key ", " key", "k\u00e9y", "ke\u0301y", "ß", "ss", "🐘" * 200]
    other = queue.another()
    for name in (queue, other):
        for key in keys:
            name.enqueue(key, "behind", group_key=key)
        rows = name.dequeue(100)
        assert bodies(rows) == keys
        assert [name.message(row.message_id).group_key for row in rows] == keys


@pytest.mark.promise("P07")
def test_a_rolled_back_finish_leaves_the_group_as_it_was(queue: CheckedQueue) -> None:
    queue.enqueue("1", "2", group_key="a")
    before = queue.stored()
    with rolled_back(queue.connection):
        assert queue.finish_next() == "1"
        assert queue.finish_next() == "2"
        queue.enqueue("3", group_key="a")
    assert queue.stored() == before
    assert [queue.finish_next() for _ in range(2)] == ["1", "2"]


@pytest.mark.promise("P02")
def test_drop_queue_with_force_removes_groups(queue: CheckedQueue) -> None:
    queue.enqueue("1", "2", "3", group_key="a")
    queue.refused("RQ704", "drop_queue")
    queue.call("alter_queue", group_limit=2)
    queue.call("drop_queue", force=True)
    queue.call("create_queue")
    assert set(queue.stored().values()) == {0}


def test_health_warns_of_overdue_groups(queue: CheckedQueue) -> None:
    def overdue() -> Row:
        [row] = [
            row
            for row in call(queue.connection, "health")
            if row.check_name == "overdue_groups" and row.queue_name == queue.name
        ]
        return row

    assert (overdue().status, overdue().value) == ("ok", 0)
    queue.enqueue("1", "2", group_key="a")
    queue.call("alter_queue", group_limit=2)
    queue.pass_seconds(40)
    assert overdue().status == "warning"
    queue.call("maintain")
    assert overdue().status == "ok"
