"""Messages with expire_seconds: maintain expires them if they have not ended."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.helpers.calls import Row, call, rolled_back
from tests.helpers.queues import CheckedQueue
from tests.helpers.topics import bind, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("expiry")

DAY = 86400
YEARS = 3650 * DAY

OUT_OF_RANGE = [0, -1, 0.0009, 315360000.5, 1e300, float("inf"), float("-inf"), float("nan")]


def expire(queue: CheckedQueue, seconds: int = 61) -> int:
    """Let time pass and return how many messages the next maintain expires."""
    queue.pass_seconds(seconds)
    return maintain(queue)


def maintain(queue: CheckedQueue) -> int:
    """Call maintain and return how many messages it expires."""
    row = queue.call_one("maintain")
    assert row.elected
    return int(row.expired)


def is_empty(queue: CheckedQueue) -> bool:
    """Return whether no table has a row of the queue."""
    return not any(queue.stored().values())


@pytest.mark.promise("P36")
def test_message_expires_with_the_first_maintain_after_its_time(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("late", expire_seconds=60)
    assert maintain(queue) == 0
    assert queue.state_of(message_id) == "ready"
    assert expire(queue) == 1
    assert queue.state_of(message_id) is None
    assert queue.take() == []
    assert is_empty(queue)


@pytest.mark.promise("P36")
def test_overdue_message_may_be_dequeued_before_maintain(
    queue: CheckedQueue,
) -> None:
    queue.enqueue("late", expire_seconds=60)
    queue.pass_seconds(61)
    row = queue.dequeue_one()
    assert maintain(queue) == 0
    [done] = queue.call("complete", claim_id=row.claim_id)
    assert done.outcome == "completed"
    assert is_empty(queue)


def test_get_message_returns_expires_at(queue: CheckedQueue) -> None:
    [message_id, plain] = [*queue.enqueue("a", expire_seconds=90), *queue.enqueue("b")]
    row = queue.message(message_id)
    assert abs(row.expires_at - row.enqueued_at - timedelta(seconds=90)) < timedelta(seconds=0.01)
    assert queue.message(plain).expires_at is None


@pytest.mark.promise("P36")
def test_only_due_messages_expire(queue: CheckedQueue) -> None:
    queue.enqueue("long", expire_seconds=1000)
    queue.enqueue("never")
    queue.enqueue("short", "short", expire_seconds=60)
    assert expire(queue) == 2
    assert queue.take() == ["long", "never"]


@pytest.mark.promise("P36")
@pytest.mark.parametrize(
    "where",
    [
        {"delay_seconds": 1000},
        {"priority": 0},
        {"dedup_key": "key"},
        {"group_key": "a"},
        {"group_key": "a", "delay_seconds": 1000},
    ],
    ids=json.dumps,
)
def test_message_expires_in_every_state(queue: CheckedQueue, where: dict[str, Any]) -> None:
    queue.enqueue("late", expire_seconds=60, **where)
    assert expire(queue) == 1
    assert is_empty(queue)


@pytest.mark.promise("P36")
def test_promoted_message_expires(queue: CheckedQueue) -> None:
    queue.enqueue("late", expire_seconds=60, delay_seconds=30)
    queue.pass_seconds(31)
    assert queue.call_one("maintain").promoted == 1
    assert expire(queue, 30) == 1
    assert maintain(queue) == 0
    assert is_empty(queue)


@pytest.mark.promise("P36")
def test_message_promoted_after_its_expiry_is_not_delivered(queue: CheckedQueue) -> None:
    queue.enqueue("late", expire_seconds=60, delay_seconds=30)
    assert expire(queue) == 1
    assert is_empty(queue)


@pytest.mark.promise("P36", "P26")
def test_blocked_message_and_its_predecessor_expire(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first", expire_seconds=100)
    queue.enqueue("second", predecessor_ids=[first], expire_seconds=60)
    [third] = queue.enqueue("third", predecessor_ids=[first])
    assert expire(queue) == 1
    assert queue.state_of(third) == "blocked"
    assert expire(queue, 40) == 1
    assert queue.take() == ["third"]


@pytest.mark.promise("P36")
def test_resumed_message_expires(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    queue.enqueue("second", predecessor_ids=[first], expire_seconds=60)
    queue.finish_next()
    assert expire(queue) == 1
    assert is_empty(queue)


@pytest.mark.promise("P36", "P24")
def test_group_continues_after_messages_expire(queue: CheckedQueue) -> None:
    queue.enqueue("1", group_key="a", expire_seconds=60)
    queue.enqueue("2", group_key="a")
    queue.enqueue("3", group_key="a", expire_seconds=60)
    queue.enqueue("4", group_key="a")
    assert expire(queue) == 2
    assert [queue.finish_next(), queue.finish_next()] == ["2", "4"]
    assert is_empty(queue)


@pytest.mark.promise("P36", "P21")
def test_message_waiting_in_its_group_expires(queue: CheckedQueue) -> None:
    queue.enqueue("1", group_key="a")
    queue.enqueue("2", group_key="a", expire_seconds=60)
    queue.enqueue("3", group_key="a")
    row = queue.dequeue_one()
    queue.call("extend_lease", claim_id=row.claim_id, lease_seconds=1000)
    assert expire(queue) == 1
    assert queue.take() == []
    queue.call("complete", claim_id=row.claim_id)
    assert queue.take() == ["3"]


@pytest.mark.promise("P36")
def test_message_that_got_a_slot_expires(queue: CheckedQueue) -> None:
    queue.enqueue("1", group_key="a")
    queue.enqueue("2", group_key="a", expire_seconds=60)
    queue.finish_next()
    assert expire(queue) == 1
    assert is_empty(queue)


@pytest.mark.promise("P36")
@pytest.mark.parametrize("due", ["before", "held"])
@pytest.mark.parametrize("back", ["release", "retry_later", "retry_now", "reap"])
def test_returned_message_expires(queue: CheckedQueue, back: str, due: str) -> None:
    queue.enqueue("late", expire_seconds=60)
    row = queue.dequeue_one(lease_seconds=50 if due == "before" else 1000)
    if due == "held":
        assert expire(queue) == 0
        assert maintain(queue) == 0
        assert queue.stored()["expiry"] == 0
    if back == "reap":
        queue.pass_seconds(1001 if due == "held" else 51)
        assert queue.call_one("reap").reaped == 1
    elif back == "release":
        queue.call("release", claim_id=row.claim_id)
    else:
        delay = 0 if back == "retry_now" else 500
        queue.call("retry_later", claim_id=row.claim_id, delay_seconds=delay)
    if due == "before":
        assert maintain(queue) == 0
        assert expire(queue, 61) == 1
    else:
        assert maintain(queue) == 1
    assert queue.take() == []
    maintain(queue)
    assert is_empty(queue)


@pytest.mark.promise("P36")
def test_promoted_retry_expires(queue: CheckedQueue) -> None:
    queue.enqueue("late", expire_seconds=60)
    queue.finish_one("retry_later", delay_seconds=10)
    queue.pass_seconds(11)
    assert queue.call_one("maintain").promoted == 1
    assert expire(queue, 60) == 1
    assert is_empty(queue)


@pytest.mark.promise("P36")
def test_dead_message_expires_only_after_a_reset(queue: CheckedQueue) -> None:
    [message_id] = queue.make_dead("late", expire_seconds=60)
    assert expire(queue) == 0
    assert queue.state_of(message_id) == "dead"
    queue.call("reset")
    assert queue.state_of(message_id) == "ready"
    assert maintain(queue) == 1
    assert is_empty(queue)


@pytest.mark.promise("P36")
def test_message_reset_into_its_group_expires(queue: CheckedQueue) -> None:
    queue.make_dead("late", expire_seconds=60, group_key="a")
    queue.enqueue("first", group_key="a")
    assert expire(queue) == 0
    queue.call("reset")
    assert maintain(queue) == 1
    assert queue.finish_next() == "first"
    assert is_empty(queue)


@pytest.mark.promise("P36")
@pytest.mark.parametrize("end", ["complete", "fail_now", "cancel", "purge"])
def test_expiry_row_of_an_ended_message_is_deleted_when_due(queue: CheckedQueue, end: str) -> None:
    [message_id] = queue.enqueue("early", expire_seconds=60)
    if end == "cancel":
        queue.call("cancel", message_ids=[message_id])
    elif end == "purge":
        queue.call("purge_queue")
    else:
        queue.finish_one(end)
    assert queue.stored()["expiry"] == 1
    assert expire(queue) == 0
    assert queue.stored()["expiry"] == 0


@pytest.mark.promise("P36")
def test_rolled_back_enqueue_leaves_no_expiry_row(queue: CheckedQueue) -> None:
    with rolled_back(queue.connection):
        queue.enqueue("never", expire_seconds=60)
    assert is_empty(queue)
    assert expire(queue) == 0


@pytest.mark.promise("P36", "P12")
def test_duplicate_keeps_the_expiry_and_expiry_releases_the_key(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first", dedup_key="key", expire_seconds=60)
    row = queue.call_one("enqueue", body="x", dedup_key="key", expire_seconds=10)
    assert (row.message_id, row.outcome) == (first, "duplicate")
    assert queue.stored()["expiry"] == 1
    assert expire(queue, 11) == 0
    assert expire(queue, 50) == 1
    assert queue.call_one("enqueue", body="x", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P36")
@pytest.mark.parametrize("where", [{}, {"delay_seconds": 1000}, {"group_key": "a"}], ids=json.dumps)
def test_archive_keeps_a_message_as_expired(queue: CheckedQueue, where: dict[str, Any]) -> None:
    queue.call("alter_queue", archive_days=1)
    [message_id] = queue.enqueue("late", expire_seconds=60, **where)
    assert expire(queue) == 1
    assert queue.state_of(message_id) == "expired"
    queue.call("archive")
    row = queue.message(message_id)
    assert (row.state, row.body, row.attempt) == ("expired", "late", 0)
    assert queue.finished() == [(message_id, "expired")]
    assert maintain(queue) == 0


@pytest.mark.promise("P36")
def test_enqueue_batch_sets_expiry_per_message(queue: CheckedQueue) -> None:
    batches: list[list[dict[str, Any]]] = [
        [
            {"body": "a1"},
            {"body": "a2", "expire_seconds": 60},
            {"body": "a3", "expire_seconds": 60, "delay_seconds": 1000},
            {"body": "a4", "expire_seconds": None},
            {"body": "a5", "expire_seconds": 1000},
        ],
        [
            {"body": "b1", "expire_seconds": 60, "group_key": "a"},
            {"body": "b2", "expire_seconds": 60, "group_key": "a", "dedup_key": "key"},
            {"body": "twice", "expire_seconds": 60, "dedup_key": "key"},
            {"body": "b3", "group_key": "a", "predecessor_positions": [1]},
            {"body": "b4", "expire_seconds": 60.5, "predecessor_positions": [4]},
        ],
    ]
    for batch in batches:
        queue.call("enqueue_batch", messages=batch)
    assert queue.stored()["expiry"] == 6
    assert expire(queue) == 5
    assert set(queue.take()) == {"a1", "a4", "a5", "b3"}


@pytest.mark.promise("P36")
def test_batch_of_1000_messages_expires_at_once(queue: CheckedQueue) -> None:
    queue.call("enqueue_batch", messages=[{"body": "x", "expire_seconds": 60}] * 1000)
    assert expire(queue) == 1000
    assert is_empty(queue)


@pytest.mark.promise("P36")
@pytest.mark.requires("topics")
def test_published_message_expires_in_each_queue(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    for each in (queue, other):
        bind(each, word)
    publish(queue.connection, word, expire_seconds=60)
    messages = [{"topic": word, "body": "x", "expire_seconds": 60}]
    call(queue.connection, "publish_batch", messages=messages)
    for each in (queue, other):
        assert expire(each) == 2
        assert each.stored()["message"] == each.stored()["expiry"] == 0


@pytest.mark.promise("P36")
def test_maintain_expires_at_most_batch_size_messages(queue: CheckedQueue) -> None:
    queue.call("enqueue_batch", messages=[{"body": "x", "expire_seconds": 60}] * 25)
    queue.pass_seconds(61)
    counts = [int(queue.call_one("maintain", batch_size=10).expired) for _ in range(4)]
    assert counts == [10, 10, 5, 0]


@pytest.mark.promise("P36", "P13")
def test_expiry_rows_of_ended_messages_do_not_delay_others(queue: CheckedQueue) -> None:
    queue.call("enqueue_batch", messages=[{"body": "x", "expire_seconds": 50}] * 50)
    row, *_ = queue.dequeue(50)
    queue.call("complete", claim_id=row.claim_id)
    queue.enqueue("late", expire_seconds=60)
    queue.pass_seconds(61)
    assert queue.call_one("maintain", batch_size=10).expired == 1


@pytest.mark.promise("P36")
@pytest.mark.parametrize("link", ["group", "predecessor"])
def test_message_resumed_by_an_expiry_expires_in_the_same_call(
    queue: CheckedQueue, link: str
) -> None:
    own: dict[str, Any] = {"group_key": "g"} if link == "group" else {}
    [first] = queue.enqueue("first", expire_seconds=60, **own)
    filler = {"body": "ended", "expire_seconds": 60, "priority": 0}
    queue.call("enqueue_batch", messages=[filler] * 1500)
    own = own or {"predecessor_ids": [first]}
    queue.enqueue("second", expire_seconds=61, **own)
    for _ in range(3):
        queue.call("complete", claim_id=queue.dequeue(500)[0].claim_id)
    queue.pass_seconds(62)
    assert queue.call_one("maintain", batch_size=1000).expired == 2
    assert queue.take() == []


@pytest.mark.promise("P36", "P06")
def test_leased_message_does_not_delay_expiry_of_others(queue: CheckedQueue) -> None:
    queue.enqueue(*["leased"] * 5, expire_seconds=50)
    queue.dequeue(5, lease_seconds=1000)
    queue.enqueue("late", expire_seconds=60)
    queue.pass_seconds(61)
    assert queue.call_one("maintain", batch_size=2).expired == 1
    assert queue.stored()["expiry"] == 0
    assert queue.counts() == (0, 0, 5, 0)


@pytest.mark.promise("P36", "P18")
def test_paused_queue_expires_messages(queue: CheckedQueue) -> None:
    queue.enqueue("late", expire_seconds=60)
    queue.call("pause_queue")
    assert expire(queue) == 1


@pytest.mark.promise("P36")
def test_maintain_expires_messages_of_every_queue(queue: CheckedQueue) -> None:
    queue.enqueue("late", expire_seconds=60)
    queue.pass_seconds(61)
    rows: list[Row] = call(queue.connection, "maintain")
    assert {row.queue_name: row.expired for row in rows}[queue.name] == 1


def test_drop_queue_deletes_expiry_rows(queue: CheckedQueue) -> None:
    queue.enqueue("late", expire_seconds=60)
    queue.call("drop_queue", force=True)


def test_queue_without_expiry_has_no_expiry_rows(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.call("enqueue_batch", messages=[{"body": "b", "delay_seconds": 1}])
    assert queue.stored()["expiry"] == 0
    assert maintain(queue) == 0


@pytest.mark.promise("P15")
@pytest.mark.parametrize("seconds", OUT_OF_RANGE)
def test_enqueue_refuses_an_invalid_expire_seconds(queue: CheckedQueue, seconds: float) -> None:
    text = queue.refused("RQ711", "enqueue", body="x", expire_seconds=seconds)
    assert "expire_seconds must be between 0.001 and 315360000" in text
    assert is_empty(queue)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("seconds", [0, -1, 315360001, 1e300, "60", True, []])
def test_enqueue_batch_refuses_an_invalid_expire_seconds(
    queue: CheckedQueue, seconds: object
) -> None:
    messages = [{"body": "a"}, {"body": "b", "expire_seconds": seconds}]
    text = queue.refused("RQ711", "enqueue_batch", messages=messages)
    assert "expire_seconds" in text
    assert "message 2" in text
    assert is_empty(queue)


@pytest.mark.parametrize("seconds", [0.001, 315360000])
def test_expire_seconds_accepts_the_ends_of_its_range(queue: CheckedQueue, seconds: float) -> None:
    queue.enqueue("x", expire_seconds=seconds)
    queue.call("enqueue_batch", messages=[{"body": "x", "expire_seconds": seconds}])
    assert queue.stored()["expiry"] == 2


@pytest.mark.promise("P36")
def test_expiry_row_of_an_ended_message_is_kept_at_most_a_day(queue: CheckedQueue) -> None:
    ids = [queue.enqueue("single", expire_seconds=YEARS)[0] for _ in range(3)]
    messages = [
        {"body": "plain", "expire_seconds": YEARS},
        {"body": "keyed", "expire_seconds": YEARS, "dedup_key": "key"},
        {"body": "later", "expire_seconds": YEARS, "delay_seconds": YEARS},
    ]
    for batch in (messages[:1], messages):
        ids += [row.message_id for row in queue.call("enqueue_batch", messages=batch)]
    assert queue.stored()["expiry"] == len(ids)
    queue.call("cancel", message_ids=ids)
    queue.pass_seconds(DAY + 1)
    queue.call("maintain")
    assert queue.stored()["expiry"] == 0


@pytest.mark.promise("P36")
def test_message_that_moves_expires_after_days(
    queue: CheckedQueue,
) -> None:
    [ready] = queue.enqueue("ready", expire_seconds=3.5 * DAY)
    [delayed] = queue.enqueue("delayed", expire_seconds=3.5 * DAY, delay_seconds=30 * DAY)
    for _ in range(3):
        for _ in range(3):
            row = queue.dequeue_one()
            assert row.message_id == ready
            queue.call("release", claim_id=row.claim_id)
        queue.pass_seconds(DAY + 1)
        assert queue.call_one("maintain").expired == 0
        assert queue.stored()["expiry"] == 2, "one row per message"
    assert (queue.state_of(ready), queue.state_of(delayed)) == ("ready", "delayed")
    queue.pass_seconds(DAY)
    assert queue.call_one("maintain").expired == 2
    assert queue.stored()["expiry"] == 0
