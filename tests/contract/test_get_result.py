"""get_result: how a message has ended, where its queue keeps that, and for how long."""

from typing import Any

import pytest

from tests.helpers.calls import call, rolled_back
from tests.helpers.queues import CheckedQueue, SecondSession
from tests.helpers.results import KEPT_SECONDS, end_of, keeping, result_of

__all__ = ["keeping"]

pytestmark = pytest.mark.requires("results")


def leased(queue: CheckedQueue, *bodies: str, **arguments: Any) -> tuple[int, list[int]]:
    """Enqueue messages and lease them; return the claim and their ids."""
    ids = queue.enqueue(*bodies, **arguments)
    return queue.dequeue(len(ids))[0].claim_id, ids


@pytest.mark.promise("P32")
def test_a_completed_message_has_its_result(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("complete", claim_id=claim, results=[{"sum": [1, 2.5, None, "ü"]}])
    row = result_of(keeping, message)
    assert row is not None
    assert (row.state, row.result, row.last_error) == (
        "completed",
        {"sum": [1, 2.5, None, "ü"]},
        None,
    )
    assert row.finished_at is not None


@pytest.mark.promise("P32")
@pytest.mark.parametrize("result", [0, False, "", "null", [], {}, 1.5, [None], -1])
def test_any_json_value_is_a_result(keeping: CheckedQueue, result: Any) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("complete", claim_id=claim, message_ids=[message], results=[result])
    found = result_of(keeping, message)
    assert found is not None
    assert (found.result, type(found.result)) == (result, type(result))


@pytest.mark.promise("P32")
@pytest.mark.parametrize("results", [None, [None, None, None]])
def test_a_message_may_end_without_a_result(
    keeping: CheckedQueue, results: list[None] | None
) -> None:
    claim, ids = leased(keeping, "a", "b", "c")
    given = {} if results is None else {"message_ids": ids, "results": results}
    keeping.call("complete", claim_id=claim, **given)
    assert [end_of(keeping, message) for message in ids] == [("completed", None, None)] * 3


@pytest.mark.promise("P32")
@pytest.mark.parametrize("keyed", [False, True])
def test_results_go_along_the_messages_as_they_are_named(
    keeping: CheckedQueue, keyed: bool
) -> None:
    ids = [keeping.enqueue("a", dedup_key=str(one) if keyed else None)[0] for one in range(5)]
    claim = keeping.dequeue(5)[0].claim_id
    some, rest = [ids[3], ids[0]], [ids[1], ids[4], ids[2]]
    keeping.call("complete", claim_id=claim, message_ids=some, results=["d", "a"])
    keeping.call("complete", claim_id=claim, message_ids=rest, results=["b", None, "c"])
    found = [end_of(keeping, message) for message in ids]
    assert [end[1] for end in found if end] == ["a", "b", "c", "d", None]


@pytest.mark.promise("P32")
def test_of_a_message_named_twice_the_first_result_counts(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    rows = keeping.call(
        "complete", claim_id=claim, message_ids=[message, message], results=["a", "b"]
    )
    assert {row.outcome for row in rows} == {"completed"}
    assert end_of(keeping, message) == ("completed", "a", None)


@pytest.mark.promise("P08", "P32")
def test_a_stale_message_among_them_gets_no_result(keeping: CheckedQueue) -> None:
    claim, ids = leased(keeping, "a", "b", "c")
    keeping.call("release", claim_id=claim, message_ids=ids[1:2])
    rows = keeping.call("complete", claim_id=claim, message_ids=ids, results=["a", "b", "c"])
    assert [row.outcome for row in rows] == ["completed", "stale", "completed"]
    assert [end_of(keeping, message) for message in ids] == [
        ("completed", "a", None),
        ("ready", None, None),
        ("completed", "c", None),
    ]
    assert keeping.stored()["result"] == 2


@pytest.mark.promise("P32")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_an_archive_is_no_obstacle(keeping: CheckedQueue, archive_days: int) -> None:
    keeping.call("alter_queue", archive_days=archive_days)
    claim, ids = leased(keeping, "a", "b")
    keeping.call("complete", claim_id=claim, message_ids=ids[:1], results=["a"])
    keeping.call("complete", claim_id=claim, message_ids=ids[1:], results=["b"])
    assert [end_of(keeping, message) for message in ids] == [
        ("completed", "a", None),
        ("completed", "b", None),
    ]
    keeping.call("maintain")
    assert [end_of(keeping, message) for message in ids] == [
        ("completed", "a", None),
        ("completed", "b", None),
    ]


@pytest.mark.promise("P32")
@pytest.mark.parametrize("routine", ["fail_now", "retry_later"])
def test_a_dead_message_has_its_error(keeping: CheckedQueue, routine: str) -> None:
    (message,) = keeping.enqueue("a")
    keeping.finish_one(routine, error="broken")
    row = result_of(keeping, message)
    assert row is not None
    assert (row.state, row.result, row.last_error) == ("dead", None, "broken")
    assert row.finished_at is not None


@pytest.mark.promise("P32")
def test_a_message_whose_last_lease_ran_out_is_dead(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    keeping.dequeue_one(worker_name="w")
    keeping.pass_seconds(1000)
    keeping.call("maintain")
    end = end_of(keeping, message)
    assert end is not None
    assert end[:2] == ("dead", None)
    assert "lease expired" in end[2]


@pytest.mark.promise("P27", "P32")
def test_a_message_that_fails_with_its_predecessor_is_dead(keeping: CheckedQueue) -> None:
    (first,) = keeping.enqueue("a")
    (second,) = keeping.enqueue("b", predecessor_ids=[first], on_predecessor_dead="fail")
    assert end_of(keeping, second) == ("blocked", None, None)
    keeping.finish_one("fail_now", error="broken")
    assert end_of(keeping, second) == ("dead", None, f"predecessor {first} is dead")
    (third,) = keeping.enqueue("c", predecessor_ids=[first], on_predecessor_dead="fail")
    assert end_of(keeping, third) == ("dead", None, f"predecessor {first} is dead")


@pytest.mark.promise("P32")
@pytest.mark.parametrize("place", ["ready", "delayed", "blocked", "group_waiting"])
def test_a_cancelled_message_is_cancelled(keeping: CheckedQueue, place: str) -> None:
    (first,) = keeping.enqueue("a", group_key="g")
    given: dict[str, dict[str, Any]] = {
        "ready": {},
        "delayed": {"delay_seconds": 60},
        "blocked": {"predecessor_ids": [first]},
        "group_waiting": {"group_key": "g"},
    }
    (message,) = keeping.enqueue("b", **given[place])
    keeping.call("cancel", message_ids=[message])
    assert end_of(keeping, message) == ("cancelled", None, None)
    assert end_of(keeping, first) == ("ready", None, None)


@pytest.mark.promise("P32")
@pytest.mark.parametrize("routine", ["cancel", "purge_queue"])
def test_a_dead_message_that_is_withdrawn_is_cancelled_and_keeps_its_error(
    keeping: CheckedQueue, routine: str
) -> None:
    (message,) = keeping.make_dead("a")
    if routine == "cancel":
        keeping.call("cancel", message_ids=[message])
    else:
        keeping.call("purge_queue", include_dead=True)
    assert end_of(keeping, message) == ("cancelled", None, "broken")
    assert keeping.stored()["result"] == 1


@pytest.mark.promise("P32")
def test_purged_messages_are_cancelled(keeping: CheckedQueue) -> None:
    claim, (held,) = leased(keeping, "a", group_key="g")
    ids = [
        *keeping.enqueue("ready"),
        *keeping.enqueue("delayed", delay_seconds=60),
        *keeping.enqueue("group_waiting", group_key="g"),
        *keeping.enqueue("blocked", predecessor_ids=[held]),
    ]
    keeping.call("purge_queue")
    assert {end_of(keeping, message) for message in ids} == {("cancelled", None, None)}
    assert end_of(keeping, held) == ("leased", None, None)
    keeping.call("complete", claim_id=claim)


@pytest.mark.promise("P32")
def test_a_message_that_is_reset_has_no_result_until_it_ends_again(keeping: CheckedQueue) -> None:
    (message,) = keeping.make_dead("a")
    keeping.call("reset")
    assert end_of(keeping, message) == ("ready", None, None)
    assert keeping.stored()["result"] == 0
    keeping.finish_one("complete", results=["late"])
    assert end_of(keeping, message) == ("completed", "late", None)


@pytest.mark.promise("P32")
def test_of_a_message_that_has_not_ended_there_is_its_state(keeping: CheckedQueue) -> None:
    keeping.call("alter_queue", max_attempts=3)
    (message,) = keeping.enqueue("a")
    assert end_of(keeping, message) == ("ready", None, None)
    keeping.finish_one("retry_later", delay_seconds=60, error="not yet")
    row = result_of(keeping, message)
    assert row is not None
    assert (row.state, row.finished_at, row.last_error) == ("delayed", None, None)
    keeping.pass_seconds(100)
    keeping.call("promote")
    keeping.dequeue_one()
    assert end_of(keeping, message) == ("leased", None, None)


@pytest.mark.promise("P32")
def test_what_a_queue_keeps_no_results_of_is_known_as_far_as_it_is_there(
    queue: CheckedQueue,
) -> None:
    (dead,) = queue.make_dead("a")
    assert end_of(queue, dead) == ("dead", None, "broken")
    (gone,) = queue.enqueue("b")
    queue.finish_one()
    assert end_of(queue, gone) is None
    queue.call("alter_queue", archive_days=1)
    (archived,) = queue.enqueue("c")
    queue.finish_one()
    assert end_of(queue, archived) == ("completed", None, None)
    queue.call("archive")
    assert end_of(queue, archived) == ("completed", None, None)
    assert queue.stored()["result"] == 0


@pytest.mark.promise("P15", "P32")
@pytest.mark.parametrize(
    "results", [[], ["a", "b"], {}, "a", 1, {"0": "a"}], ids=lambda results: repr(results)
)
@pytest.mark.parametrize("named", [False, True])
def test_results_that_are_not_one_for_each_message_are_refused(
    keeping: CheckedQueue, results: Any, named: bool
) -> None:
    claim, ids = leased(keeping, "a")
    given = {"message_ids": ids} if named else {}
    text = keeping.refused("RQ711", "complete", claim_id=claim, results=results, **given)
    assert "results" in text
    assert end_of(keeping, ids[0]) == ("leased", None, None)
    keeping.call("complete", claim_id=claim)


@pytest.mark.promise("P15", "P32")
def test_results_without_ids_are_of_a_claim_of_one_message(keeping: CheckedQueue) -> None:
    claim, ids = leased(keeping, "a", "b")
    keeping.refused("RQ711", "complete", claim_id=claim, results=["a"])
    keeping.refused("RQ711", "complete", claim_id=claim, results=["a", "b"])
    assert keeping.counts() == (0, 0, 2, 0)
    keeping.call("complete", claim_id=claim, message_ids=ids[:1])
    keeping.call("complete", claim_id=claim, results=["b"])
    assert end_of(keeping, ids[1]) == ("completed", "b", None)
    keeping.refused("RQ721", "complete", claim_id=claim, results=["b"])


@pytest.mark.promise("P15", "P32")
def test_a_queue_that_keeps_none_takes_no_results(queue: CheckedQueue) -> None:
    claim, _ = leased(queue, "a")
    for results in (["a"], [None]):
        text = queue.refused("RQ711", "complete", claim_id=claim, results=results)
        assert "result_seconds" in text
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.slow("a result of 16 megabytes", on="mariadb", ci="mariadb")
@pytest.mark.promise("P15", "P32")
def test_a_result_has_its_longest_length(keeping: CheckedQueue) -> None:
    claim, ids = leased(keeping, "a", "b")
    longest = "ü" * (1048576 - 2)
    text = keeping.refused(
        "RQ711", "complete", claim_id=claim, message_ids=ids, results=[longest + "x", 1]
    )
    assert "1048576" in text
    assert keeping.counts() == (0, 0, 2, 0)
    keeping.call("complete", claim_id=claim, message_ids=ids, results=[longest, longest])
    assert end_of(keeping, ids[1]) == ("completed", longest, None)


@pytest.mark.promise("P07", "P32")
def test_a_completion_that_is_rolled_back_leaves_no_result(
    keeping: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    claim, (message,) = leased(keeping, "a")
    with rolled_back(keeping.connection):
        keeping.call("complete", claim_id=claim, results=["a"])
        assert end_of(keeping, message) == ("completed", "a", None)
        assert end_of(elsewhere, message) == ("leased", None, None)
    assert end_of(keeping, message) == ("leased", None, None)
    assert keeping.stored()["result"] == 0


@pytest.mark.promise("P32")
def test_results_are_kept_for_result_seconds(keeping: CheckedQueue) -> None:
    old = keeping.enqueue("a")[0]
    keeping.finish_one(results=["old"])
    keeping.pass_seconds(KEPT_SECONDS - 60)
    new = keeping.enqueue("b")[0]
    keeping.finish_one(results=["new"])
    keeping.call("maintain")
    assert end_of(keeping, old) == ("completed", "old", None)
    keeping.pass_seconds(120)
    keeping.call("maintain")
    assert end_of(keeping, old) is None
    assert end_of(keeping, new) == ("completed", "new", None)
    keeping.pass_seconds(KEPT_SECONDS)
    keeping.call("maintain")
    assert end_of(keeping, new) is None
    assert keeping.stored()["result"] == 0


@pytest.mark.promise("P32")
def test_a_call_of_maintain_purges_one_batch_or_more(keeping: CheckedQueue) -> None:
    """Up to ten batches where it keeps its time, on a loaded machine fewer."""
    keeping.enqueue(*["a"] * 25)
    keeping.call("complete", claim_id=keeping.dequeue(25)[0].claim_id)
    keeping.pass_seconds(KEPT_SECONDS + 60)
    left = 25
    while left:
        keeping.call("maintain", batch_size=1)
        assert 1 <= left - keeping.stored()["result"] <= 10
        left = keeping.stored()["result"]


@pytest.mark.promise("P32")
def test_results_of_a_queue_that_keeps_none_any_more_are_purged(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    keeping.finish_one(results=["a"])
    keeping.call("maintain")
    keeping.call("alter_queue", result_seconds=0)
    assert end_of(keeping, message) == ("completed", "a", None)
    keeping.pass_seconds(120)
    keeping.call("maintain")
    assert end_of(keeping, message) is None
    assert keeping.stored()["result"] == 0


@pytest.mark.promise("P32")
def test_a_dead_message_is_known_longer_than_its_result(keeping: CheckedQueue) -> None:
    (message,) = keeping.make_dead("a")
    keeping.pass_seconds(KEPT_SECONDS + 60)
    keeping.call("maintain")
    assert keeping.stored()["result"] == 0
    assert end_of(keeping, message) == ("dead", None, "broken")


def test_results_go_with_their_queue(keeping: CheckedQueue) -> None:
    other = keeping.another(result_seconds=60)
    for queue in (keeping, other):
        queue.enqueue("a")
        queue.finish_one(results=["a"])
    keeping.call("drop_queue")
    keeping.call("create_queue", result_seconds=60)
    assert keeping.stored()["result"] == 0
    assert other.stored()["result"] == 1
    other.call("drop_queue")


def test_a_result_of_another_queue_is_unknown(keeping: CheckedQueue) -> None:
    other = keeping.another(result_seconds=60)
    (message,) = keeping.enqueue("a")
    keeping.finish_one(results=["a"])
    assert end_of(other, message) is None
    other.call("drop_queue")


def test_an_unknown_message_has_no_row(queue: CheckedQueue) -> None:
    assert end_of(queue, 0) is None
    assert end_of(queue, 2**62) is None
    queue.refused("RQ711", "get_result", message_id=None)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("seconds", [-0.1, 31536001, float("inf"), float("nan")])
def test_result_seconds_has_its_range(queue: CheckedQueue, seconds: float) -> None:
    queue.refused("RQ711", "alter_queue", result_seconds=seconds)
    queue.refused("RQ711", "create_queue", result_seconds=seconds)
    assert queue.call_one("queue_stats").result_seconds == 0


def test_result_seconds_is_a_setting(queue: CheckedQueue) -> None:
    queue.call("alter_queue", result_seconds=31536000)
    assert queue.call_one("queue_stats").result_seconds == 31536000
    queue.call("alter_queue", result_seconds=0.5)
    queue.call("alter_queue", max_attempts=3)
    assert queue.call_one("queue_stats").result_seconds == 0.5


@pytest.mark.promise("P32")
def test_health_tells_of_results_that_nobody_purges(keeping: CheckedQueue) -> None:
    def overdue() -> tuple[str, float]:
        rows = [
            row
            for row in call(keeping.connection, "health")
            if (row.check_name, row.queue_name) == ("overdue_results", keeping.name)
        ]
        assert len(rows) == 1
        return rows[0].status, rows[0].value

    assert overdue() == ("ok", 0)
    keeping.enqueue("a")
    keeping.finish_one()
    assert overdue() == ("ok", 0)
    keeping.pass_seconds(KEPT_SECONDS + 400)
    status, value = overdue()
    assert status == "warning"
    assert 400 <= value < 500
    keeping.call("maintain")
    assert overdue() == ("ok", 0)


@pytest.mark.promise("P32")
def test_a_result_is_the_same_for_who_waits_for_a_lock(
    keeping: CheckedQueue, second: SecondSession
) -> None:
    """A completion that waited for another one finds nothing left, and keeps no result."""
    claim, (message,) = leased(keeping, "a")
    with rolled_back(keeping.connection):
        keeping.call("complete", claim_id=claim, results=["first"])
        waiting = second.start_blocked(
            lambda own: keeping.via(own).call("complete", claim_id=claim, results=["second"])
        )
    assert waiting.result(20)[0].outcome == "completed"
    assert end_of(keeping, message) == ("completed", "second", None)


@pytest.mark.promise("P32", "P36")
@pytest.mark.requires("expiry")
def test_an_expired_message_has_a_row_without_a_result(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a", expire_seconds=1)
    keeping.pass_seconds(2)
    assert keeping.call_one("maintain").expired == 1
    assert end_of(keeping, message) == ("expired", None, None)
