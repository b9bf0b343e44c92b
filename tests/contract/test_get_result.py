"""get_result: how a message ended, and for how long that is kept."""

from typing import Any

import pytest

from tests.helpers.calls import rolled_back
from tests.helpers.queues import CheckedQueue, SecondSession
from tests.helpers.results import KEPT_SECONDS, end_of, keeping, result_of

__all__ = ["keeping"]

pytestmark = [pytest.mark.promise("P32"), pytest.mark.requires("results")]


def leased(queue: CheckedQueue, *bodies: str, **arguments: Any) -> tuple[int, list[int]]:
    """Enqueue messages and lease them; return the claim and their ids."""
    ids = queue.enqueue(*bodies, **arguments)
    return queue.dequeue(len(ids))[0].claim_id, ids


def test_get_result_returns_the_result_of_completion(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("complete", claim_id=claim, results=[{"sum": [1, 2.5, None, "ü"]}])
    row = result_of(keeping, message)
    assert row is not None
    result = {"sum": [1, 2.5, None, "ü"]}
    assert (row.state, row.result, row.last_error) == ("completed", result, None)
    assert row.finished_at is not None


@pytest.mark.parametrize("result", [0, False, "", "null", [], {}, 1.5, [None], -1])
def test_result_may_be_any_json_value(keeping: CheckedQueue, result: Any) -> None:
    claim, (message,) = leased(keeping, "a")
    keeping.call("complete", claim_id=claim, message_ids=[message], results=[result])
    found = result_of(keeping, message)
    assert found is not None
    assert (found.result, type(found.result)) == (result, type(result))


@pytest.mark.parametrize("results", [None, [None, None, None]])
def test_message_may_complete_without_a_result(
    keeping: CheckedQueue, results: list[None] | None
) -> None:
    claim, ids = leased(keeping, "a", "b", "c")
    given = {} if results is None else {"message_ids": ids, "results": results}
    keeping.call("complete", claim_id=claim, **given)
    assert [end_of(keeping, message) for message in ids] == [("completed", None, None)] * 3


@pytest.mark.parametrize("keyed", [False, True])
def test_results_follow_the_order_of_message_ids(keeping: CheckedQueue, keyed: bool) -> None:
    ids = [keeping.enqueue("a", dedup_key=str(one) if keyed else None)[0] for one in range(5)]
    claim = keeping.dequeue(5)[0].claim_id
    for positions, results in (([3, 0], ["d", "a"]), ([1, 4, 2], ["b", None, "c"])):
        named = [ids[position] for position in positions]
        keeping.call("complete", claim_id=claim, message_ids=named, results=results)
    found = [end_of(keeping, message) for message in ids]
    assert [end[1] for end in found if end] == ["a", "b", "c", "d", None]


def test_first_result_of_a_duplicate_message_id_counts(keeping: CheckedQueue) -> None:
    claim, (message,) = leased(keeping, "a")
    rows = keeping.call(
        "complete", claim_id=claim, message_ids=[message, message], results=["a", "b"]
    )
    assert {row.outcome for row in rows} == {"completed"}
    assert end_of(keeping, message) == ("completed", "a", None)


@pytest.mark.promise("P08")
def test_stale_message_gets_no_result(keeping: CheckedQueue) -> None:
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


@pytest.mark.parametrize("archive_days", [0, 1])
def test_results_work_with_and_without_an_archive(keeping: CheckedQueue, archive_days: int) -> None:
    keeping.call("alter_queue", archive_days=archive_days)
    claim, ids = leased(keeping, "a", "b")
    keeping.call("complete", claim_id=claim, message_ids=ids[:1], results=["a"])
    keeping.call("complete", claim_id=claim, message_ids=ids[1:], results=["b"])
    for _ in range(2):
        for message, result in zip(ids, "ab", strict=True):
            assert end_of(keeping, message) == ("completed", result, None)
        keeping.call("maintain")


@pytest.mark.parametrize("routine", ["fail_now", "retry_later"])
def test_result_of_a_dead_message_has_its_error(keeping: CheckedQueue, routine: str) -> None:
    (message,) = keeping.enqueue("a")
    keeping.finish_one(routine, error="broken")
    row = result_of(keeping, message)
    assert row is not None
    assert (row.state, row.result, row.last_error) == ("dead", None, "broken")
    assert row.finished_at is not None


def test_result_of_an_expired_last_lease_is_dead(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    keeping.dequeue_one(worker_name="w")
    keeping.pass_seconds(1000)
    keeping.call("maintain")
    end = end_of(keeping, message)
    assert end is not None
    assert end[:2] == ("dead", None)
    assert "lease expired" in end[2]


@pytest.mark.promise("P27")
def test_result_of_a_message_failed_by_its_predecessor_is_dead(keeping: CheckedQueue) -> None:
    (first,) = keeping.enqueue("a")
    (second,) = keeping.enqueue("b", predecessor_ids=[first], on_predecessor_dead="fail")
    assert end_of(keeping, second) == ("blocked", None, None)
    keeping.finish_one("fail_now", error="broken")
    assert end_of(keeping, second) == ("dead", None, f"predecessor {first} is dead")
    (third,) = keeping.enqueue("c", predecessor_ids=[first], on_predecessor_dead="fail")
    assert end_of(keeping, third) == ("dead", None, f"predecessor {first} is dead")


@pytest.mark.parametrize("routine", ["cancel", "purge_queue"])
def test_result_of_a_cancelled_message_is_cancelled(keeping: CheckedQueue, routine: str) -> None:
    (dead,) = keeping.make_dead("dead")
    _, (held,) = leased(keeping, "held", group_key="g")
    ids = [
        *keeping.enqueue("ready"),
        *keeping.enqueue("delayed", delay_seconds=60),
        *keeping.enqueue("group_waiting", group_key="g"),
        *keeping.enqueue("blocked", predecessor_ids=[held]),
    ]
    given = {"message_ids": [*ids, dead]} if routine == "cancel" else {"include_dead": True}
    keeping.call(routine, **given)
    assert {end_of(keeping, message) for message in ids} == {("cancelled", None, None)}
    assert end_of(keeping, dead) == ("cancelled", None, "broken")
    assert end_of(keeping, held) == ("leased", None, None)
    assert keeping.stored()["result"] == 5


def test_reset_message_has_no_result_until_it_ends(keeping: CheckedQueue) -> None:
    (message,) = keeping.make_dead("a")
    keeping.call("reset")
    assert end_of(keeping, message) == ("ready", None, None)
    assert keeping.stored()["result"] == 0
    keeping.finish_one("complete", results=["late"])
    assert end_of(keeping, message) == ("completed", "late", None)


def test_get_result_returns_the_state_of_an_unfinished_message(keeping: CheckedQueue) -> None:
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


def test_get_result_without_result_seconds_reads_the_message(
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


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "results", [[], ["a", "b"], {}, "a", 1, {"0": "a"}], ids=lambda results: repr(results)
)
@pytest.mark.parametrize("named", [False, True])
def test_results_must_have_one_value_per_message(
    keeping: CheckedQueue, results: Any, named: bool
) -> None:
    claim, ids = leased(keeping, "a")
    given = {"message_ids": ids} if named else {}
    text = keeping.refused("RQ711", "complete", claim_id=claim, results=results, **given)
    assert "results" in text
    assert end_of(keeping, ids[0]) == ("leased", None, None)
    keeping.call("complete", claim_id=claim)


@pytest.mark.promise("P15")
def test_results_without_ids_require_a_claim_of_one_message(keeping: CheckedQueue) -> None:
    claim, ids = leased(keeping, "a", "b")
    keeping.refused("RQ711", "complete", claim_id=claim, results=["a"])
    keeping.refused("RQ711", "complete", claim_id=claim, results=["a", "b"])
    assert keeping.counts() == (0, 0, 2, 0)
    keeping.call("complete", claim_id=claim, message_ids=ids[:1])
    keeping.call("complete", claim_id=claim, results=["b"])
    assert end_of(keeping, ids[1]) == ("completed", "b", None)
    keeping.refused("RQ721", "complete", claim_id=claim, results=["b"])


@pytest.mark.promise("P15")
def test_queue_without_result_seconds_refuses_results(queue: CheckedQueue) -> None:
    claim, _ = leased(queue, "a")
    for results in (["a"], [None]):
        text = queue.refused("RQ711", "complete", claim_id=claim, results=results)
        assert "result_seconds" in text
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.slow("a result of 16 megabytes", on="mariadb", ci="mariadb")
@pytest.mark.promise("P15")
def test_result_has_a_maximum_length(keeping: CheckedQueue) -> None:
    claim, ids = leased(keeping, "a", "b")
    longest = "ü" * (1048576 - 2)
    text = keeping.refused(
        "RQ711", "complete", claim_id=claim, message_ids=ids, results=[longest + "x", 1]
    )
    assert "1048576" in text
    assert keeping.counts() == (0, 0, 2, 0)
    keeping.call("complete", claim_id=claim, message_ids=ids, results=[longest, longest])
    assert end_of(keeping, ids[1]) == ("completed", longest, None)


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


def test_maintain_purges_one_to_ten_batches_of_results(keeping: CheckedQueue) -> None:
    """Fewer than ten batches on a loaded machine, as its time is limited."""
    keeping.enqueue(*["a"] * 25)
    keeping.call("complete", claim_id=keeping.dequeue(25)[0].claim_id)
    keeping.pass_seconds(KEPT_SECONDS + 60)
    left = 25
    while left:
        keeping.call("maintain", batch_size=1)
        assert 1 <= left - keeping.stored()["result"] <= 10
        left = keeping.stored()["result"]


def test_results_are_purged_after_result_seconds_is_zero(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    keeping.finish_one(results=["a"])
    keeping.call("maintain")
    keeping.call("alter_queue", result_seconds=0)
    assert end_of(keeping, message) == ("completed", "a", None)
    keeping.pass_seconds(120)
    keeping.call("maintain")
    assert end_of(keeping, message) is None
    assert keeping.stored()["result"] == 0


def test_dead_message_outlives_its_result(keeping: CheckedQueue) -> None:
    (message,) = keeping.make_dead("a")
    keeping.pass_seconds(KEPT_SECONDS + 60)
    keeping.call("maintain")
    assert keeping.stored()["result"] == 0
    assert end_of(keeping, message) == ("dead", None, "broken")


def test_drop_queue_removes_results(keeping: CheckedQueue) -> None:
    other = keeping.another(result_seconds=60)
    for queue in (keeping, other):
        queue.enqueue("a")
        queue.finish_one(results=["a"])
    keeping.call("drop_queue")
    keeping.call("create_queue", result_seconds=60)
    assert keeping.stored()["result"] == 0
    assert other.stored()["result"] == 1
    other.call("drop_queue")


def test_get_result_of_an_unknown_message_is_empty(keeping: CheckedQueue) -> None:
    other = keeping.another(result_seconds=60)
    (message,) = keeping.enqueue("a")
    keeping.finish_one(results=["a"])
    for unknown in (message, 0, 2**62):
        assert end_of(other, unknown) is None
    other.refused("RQ711", "get_result", message_id=None)
    other.call("drop_queue")


def test_complete_after_a_rolled_back_one_sets_its_result(
    keeping: CheckedQueue, second: SecondSession
) -> None:
    claim, (message,) = leased(keeping, "a")
    with rolled_back(keeping.connection):
        keeping.call("complete", claim_id=claim, results=["first"])
        waiting = second.start_blocked(
            lambda own: keeping.via(own).call("complete", claim_id=claim, results=["second"])
        )
    assert waiting.result(20)[0].outcome == "completed"
    assert end_of(keeping, message) == ("completed", "second", None)


@pytest.mark.promise("P36")
@pytest.mark.requires("expiry")
def test_result_of_an_expired_message_is_expired(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a", expire_seconds=1)
    keeping.pass_seconds(2)
    assert keeping.call_one("maintain").expired == 1
    assert end_of(keeping, message) == ("expired", None, None)
