"""discard_dead."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import rolled_back, transaction
from tests.helpers.queues import CheckedQueue


def discard(queue: CheckedQueue, **arguments: Any) -> int:
    return int(queue.call_one("discard_dead", **arguments).removed)


def dead(queue: CheckedQueue) -> list[int]:
    return [row.message_id for row in queue.call("list_dead")]


@pytest.mark.promise("P02", "P15")
def test_only_dead_messages_go(queue: CheckedQueue) -> None:
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
def test_null_takes_the_oldest(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", "c", "d")
    assert discard(queue, max_messages=2) == 2
    assert dead(queue) == ids[2:]
    assert discard(queue, message_ids=None) == 2
    assert discard(queue) == 0
    assert queue.stored()["message"] == 0


@pytest.mark.requires("results")
@pytest.mark.promise("P15", "P32")
def test_what_is_discarded_has_ended_as_cancelled(queue: CheckedQueue) -> None:
    queue.call("alter_queue", result_seconds=60)
    [message_id] = queue.make_dead("a")
    assert queue.call_one("get_result", message_id=message_id).state == "dead"
    assert discard(queue) == 1
    assert queue.call_one("get_result", message_id=message_id).state == "cancelled"


@pytest.mark.promise("P15")
def test_a_list_is_discarded_whatever_max_messages_says(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", "c")
    assert discard(queue, message_ids=[ids[2], ids[0]], max_messages=1) == 2
    assert dead(queue) == ids[1:2]
    assert discard(queue, message_ids=[]) == 0


@pytest.mark.promise("P15")
def test_other_queues_keep_theirs(queue: CheckedQueue) -> None:
    other = queue.another()
    theirs = other.make_dead("other")
    queue.make_dead("own")
    assert discard(queue, message_ids=theirs) == 0
    assert discard(queue) == 1
    assert dead(other) == theirs


@pytest.mark.promise("P15")
def test_a_type_and_a_time_of_death_say_which(queue: CheckedQueue) -> None:
    old = queue.make_dead("old mail", message_type="mail")
    old += queue.make_dead("old other", message_type="mail ")
    queue.pass_seconds(1000)
    queue.make_dead("new mail", message_type="mail")
    untyped = queue.make_dead("new, of no type")
    before = datetime.now(UTC) - timedelta(seconds=500)
    assert discard(queue, message_type="MAIL") == 0
    assert discard(queue, message_type="mail", died_before=before) == 1
    assert old[0] not in dead(queue)
    assert discard(queue, message_type="mail") == 1
    assert dead(queue) == [old[1], *untyped]
    assert discard(queue, died_before=before) == 1
    assert dead(queue) == untyped


@pytest.mark.promise("P15")
def test_what_does_not_match_is_not_counted(queue: CheckedQueue) -> None:
    kinds = ["other", "mail", "other", "mail", "mail"]
    ids = [queue.make_dead("x", message_type=kind)[0] for kind in kinds]
    assert discard(queue, message_type="mail", max_messages=2) == 2
    assert dead(queue) == [ids[0], ids[2], ids[4]]


@pytest.mark.promise("P15")
def test_the_archive_keeps_none_of_them(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    [message_id] = queue.make_dead("a")
    assert discard(queue) == 1
    queue.call("archive")
    assert queue.state_of(message_id) is None
    assert queue.finished() == []


@pytest.mark.promise("P12")
def test_the_key_stays_with_the_newer_message_that_has_it(queue: CheckedQueue) -> None:
    queue.make_dead("old", dedup_key="key")
    [newer] = queue.enqueue("newer", dedup_key="key")
    assert discard(queue) == 1
    row = queue.call_one("enqueue", dedup_key="key")
    assert (row.message_id, row.outcome) == (newer, "duplicate")


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_a_group_that_a_dead_message_holds_goes_on(queue: CheckedQueue) -> None:
    queue.call("alter_queue", group_after_dead="hold")
    queue.enqueue("first", "second", group_key="g")
    queue.finish_one("fail_now")
    assert queue.take() == []
    assert discard(queue) == 1
    queue.call("maintain")
    assert queue.take() == ["second"]


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_a_dead_message_that_has_let_its_group_go_frees_it_not_again(queue: CheckedQueue) -> None:
    queue.enqueue("first", "second", "third", group_key="g")
    queue.finish_one("fail_now")
    assert queue.take() == ["second"]
    assert discard(queue) == 1
    queue.call("maintain")
    assert queue.take() == []


@pytest.mark.promise("P26")
@pytest.mark.requires("predecessors")
def test_what_waits_for_a_dead_message_goes_on(queue: CheckedQueue) -> None:
    [first] = queue.make_dead("first")
    queue.enqueue("second", predecessor_ids=[first])
    assert queue.take() == []
    assert discard(queue, message_ids=[first]) == 1
    assert queue.take() == ["second"]


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_dead_message_that_another_session_is_at_work_on_is_passed_over(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    ids = queue.make_dead("a", "b")
    with transaction(elsewhere.connection):
        elsewhere.call("reset", message_ids=ids[:1])
        assert discard(queue, message_ids=ids) == 1
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P17")
def test_a_rolled_back_call_changes_nothing(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", dedup_key="key")
    with rolled_back(queue.connection):
        assert discard(queue) == 2
    assert dead(queue) == ids
    assert queue.stored()["message"] == 2


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P15")
def test_ten_thousand_go_in_one_call(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=1)
    queue.call("enqueue_batch", messages=[{}] * 10000)
    for _ in range(10):
        queue.call("fail_now", claim_id=queue.dequeue(1000)[0].claim_id)
    assert discard(queue, max_messages=10000) == 10000
    assert queue.counts() == (0, 0, 0, 0)
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None])
def test_a_number_out_of_range_is_refused_and_nothing_goes(
    queue: CheckedQueue, max_messages: int | None
) -> None:
    ids = queue.make_dead("a")
    text = queue.refused("RQ711", "discard_dead", max_messages=max_messages)
    assert "max_messages" in text
    assert dead(queue) == ids


@pytest.mark.promise("P15")
@pytest.mark.parametrize("message_ids", [[1, None], [1] * 10001])
def test_what_is_no_list_of_ids_is_refused(queue: CheckedQueue, message_ids: list[Any]) -> None:
    assert "message_ids" in queue.refused("RQ711", "discard_dead", message_ids=message_ids)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("given", [{"message_type": "a"}, {"died_before": datetime.now(UTC)}])
def test_a_filter_goes_together_with_no_ids(queue: CheckedQueue, given: dict[str, Any]) -> None:
    ids = queue.make_dead("a", message_type="a")
    queue.refused("RQ711", "discard_dead", message_ids=ids, **given)
    assert dead(queue) == ids
