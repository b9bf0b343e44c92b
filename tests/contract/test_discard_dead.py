"""discard_dead."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import rolled_back
from tests.helpers.queues import CheckedQueue


def discard(queue: CheckedQueue, **arguments: Any) -> int:
    return int(queue.call_one("discard_dead", **arguments).removed)


def dead(queue: CheckedQueue) -> list[int]:
    return [row.message_id for row in queue.call("list_dead")]


@pytest.mark.promise("P02", "P15")
def test_discard_dead_removes_only_dead_messages(queue: CheckedQueue) -> None:
    [leased] = queue.enqueue("leased")
    queue.dequeue_one()
    first, second = queue.make_dead("a", "b")
    [ready] = queue.enqueue("ready")
    [delayed] = queue.enqueue("delayed", delay_seconds=1000)
    ids = [ready, delayed, leased, first, first, -1, 9223372036854775807]
    assert discard(queue, message_ids=ids) == 1
    assert queue.counts() == (1, 1, 1, 1)
    assert queue.state_of(first) is None
    assert dead(queue) == [second]
    assert queue.stored()["message"] == 4
    assert discard(queue, message_ids=ids) == 0


@pytest.mark.promise("P15")
def test_discard_dead_without_ids_removes_the_oldest(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", "c", "d")
    assert discard(queue, max_messages=2) == 2
    assert dead(queue) == ids[2:]
    assert discard(queue, message_ids=None) == 2
    assert discard(queue) == 0
    assert queue.stored()["message"] == 0


@pytest.mark.requires("results")
@pytest.mark.promise("P15", "P32")
def test_discarded_message_has_the_result_state_cancelled(queue: CheckedQueue) -> None:
    queue.call("alter_queue", result_seconds=60)
    [message_id] = queue.make_dead("a")
    assert queue.call_one("get_result", message_id=message_id).state == "dead"
    assert discard(queue) == 1
    assert queue.call_one("get_result", message_id=message_id).state == "cancelled"


@pytest.mark.promise("P15")
def test_discard_dead_with_ids_ignores_max_messages(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", "c")
    assert discard(queue, message_ids=[ids[2], ids[0]], max_messages=1) == 2
    assert dead(queue) == ids[1:2]
    assert discard(queue, message_ids=[]) == 0


@pytest.mark.promise("P15")
def test_discard_dead_keeps_other_queues_messages(queue: CheckedQueue) -> None:
    other = queue.another()
    theirs = other.make_dead("other")
    queue.make_dead("own")
    assert discard(queue, message_ids=theirs) == 0
    assert discard(queue) == 1
    assert dead(other) == theirs


@pytest.mark.promise("P15")
def test_discard_dead_filters_by_message_type_and_died_before(queue: CheckedQueue) -> None:
    old = queue.make_dead("old mail", message_type="mail")
    old += queue.make_dead("old other", message_type="mail ")
    queue.pass_seconds(1000)
    queue.make_dead("new mail", message_type="mail")
    untyped = queue.make_dead("new, without type")
    before = datetime.now(UTC) - timedelta(seconds=500)
    assert discard(queue, message_type="MAIL") == 0
    assert discard(queue, message_type="mail", died_before=before) == 1
    assert old[0] not in dead(queue)
    assert discard(queue, message_type="mail") == 1
    assert dead(queue) == [old[1], *untyped]
    assert discard(queue, died_before=before) == 1
    assert dead(queue) == untyped


@pytest.mark.promise("P15")
def test_discard_dead_counts_only_matching_messages(queue: CheckedQueue) -> None:
    kinds = ["other", "mail", "other", "mail", "mail"]
    ids = [queue.make_dead("x", message_type=kind)[0] for kind in kinds]
    assert discard(queue, message_type="mail", max_messages=2) == 2
    assert dead(queue) == [ids[0], ids[2], ids[4]]


@pytest.mark.promise("P15")
def test_discarded_messages_do_not_go_to_the_archive(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    [message_id] = queue.make_dead("a")
    assert discard(queue) == 1
    queue.call("archive")
    assert queue.state_of(message_id) is None
    assert queue.finished() == []


@pytest.mark.promise("P12")
def test_discard_dead_keeps_the_dedup_key_of_its_new_owner(queue: CheckedQueue) -> None:
    queue.make_dead("old", dedup_key="key")
    [newer] = queue.enqueue("newer", dedup_key="key")
    assert discard(queue) == 1
    row = queue.call_one("enqueue", dedup_key="key")
    assert (row.message_id, row.outcome) == (newer, "duplicate")


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_discard_dead_releases_a_held_group(queue: CheckedQueue) -> None:
    queue.call("alter_queue", group_after_dead="hold")
    queue.enqueue("first", "second", group_key="g")
    queue.finish_one("fail_now")
    assert queue.take() == []
    assert discard(queue) == 1
    queue.call("maintain")
    assert queue.take() == ["second"]


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_discard_dead_does_not_release_a_slot_twice(queue: CheckedQueue) -> None:
    queue.enqueue("first", "second", "third", group_key="g")
    queue.finish_one("fail_now")
    assert queue.take() == ["second"]
    assert discard(queue) == 1
    queue.call("maintain")
    assert queue.take() == []


@pytest.mark.promise("P26")
@pytest.mark.requires("predecessors")
def test_discard_dead_resumes_successors(queue: CheckedQueue) -> None:
    [first] = queue.make_dead("first")
    queue.enqueue("second", predecessor_ids=[first])
    assert queue.take() == []
    assert discard(queue, message_ids=[first]) == 1
    assert queue.take() == ["second"]


@pytest.mark.promise("P17")
def test_rolled_back_discard_dead_changes_nothing(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", dedup_key="key")
    with rolled_back(queue.connection):
        assert discard(queue) == 2
    assert dead(queue) == ids
    assert queue.stored()["message"] == 2


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P15")
def test_discard_dead_removes_10000_messages_in_one_call(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=1)
    queue.call("enqueue_batch", messages=[{}] * 10000)
    for _ in range(10):
        queue.call("fail_now", claim_id=queue.dequeue(1000)[0].claim_id)
    assert discard(queue, max_messages=10000) == 10000
    assert queue.counts() == (0, 0, 0, 0)
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("name", "value"),
    [("max_messages", number) for number in (0, -1, 10001, None)]
    + [("message_ids", ids) for ids in ([1, None], [1] * 10001)],
    ids=lambda value: str(value)[:20],
)
def test_discard_dead_refuses_invalid_arguments(
    queue: CheckedQueue, name: str, value: object
) -> None:
    ids = queue.make_dead("a")
    assert name in queue.refused("RQ711", "discard_dead", **{name: value})
    assert dead(queue) == ids


@pytest.mark.promise("P15")
@pytest.mark.parametrize("filters", [{"message_type": "a"}, {"died_before": datetime.now(UTC)}])
def test_discard_dead_refuses_ids_with_a_filter(
    queue: CheckedQueue, filters: dict[str, Any]
) -> None:
    ids = queue.make_dead("a", message_type="a")
    queue.refused("RQ711", "discard_dead", message_ids=ids, **filters)
    assert dead(queue) == ids
