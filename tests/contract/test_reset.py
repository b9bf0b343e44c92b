"""reset."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import bodies, outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P10")
def test_a_dead_message_is_ready_again_with_fresh_attempts(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", max_attempts=2)
    for _ in range(2):
        queue.finish_one("retry_later", delay_seconds=0, error="broken")
    done = queue.call("reset", message_ids=[message_id])
    assert outcomes(done) == {message_id: "reset"}
    for attempt, outcome in ((1, "retrying"), (2, "dead")):
        row = queue.dequeue_one()
        assert (row.attempt, row.body, row.last_error) == (attempt, "a", "broken")
        done = queue.call("retry_later", claim_id=row.claim_id, delay_seconds=0, error="broken")
        assert outcomes(done) == {message_id: outcome}


@pytest.mark.promise("P05", "P10")
def test_it_goes_to_the_tail_of_its_priority(queue: CheckedQueue) -> None:
    queue.make_dead("urgent", priority=0)
    queue.make_dead("first dead", "second dead")
    queue.enqueue("alive")
    queue.call("reset")
    assert bodies(queue.dequeue(10)) == [
        "urgent",
        "alive",
        "first dead",
        "second dead",
    ]


@pytest.mark.promise("P05", "P10")
def test_a_message_that_died_at_the_front_goes_to_the_tail(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.finish_one("release")
    queue.finish_one("fail_now")
    queue.enqueue("b")
    queue.call("reset")
    assert bodies(queue.dequeue(10)) == ["b", "a"]


@pytest.mark.promise("P10")
def test_null_takes_the_oldest(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", "c", "d")
    done = queue.call("reset", max_messages=3)
    assert outcomes(done) == dict.fromkeys(ids[:3], "reset")
    assert queue.counts() == (3, 0, 0, 1)
    done = queue.call("reset", message_ids=None)
    assert outcomes(done) == {ids[3]: "reset"}
    assert queue.call("reset") == []


@pytest.mark.promise("P10")
def test_a_list_is_reset_whatever_max_messages_says(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b")
    done = queue.call("reset", message_ids=ids, max_messages=1)
    assert outcomes(done) == dict.fromkeys(ids, "reset")


@pytest.mark.promise("P10")
def test_only_dead_messages_are_found(queue: CheckedQueue) -> None:
    [leased] = queue.enqueue("leased")
    queue.dequeue_one()
    [dead] = queue.make_dead("dead")
    [ready] = queue.enqueue("ready")
    ids = [ready, leased, dead, -1]
    done = queue.call("reset", message_ids=ids)
    assert [row.message_id for row in done] == ids
    assert [row.outcome for row in done] == ["not_found", "not_found", "reset", "not_found"]


@pytest.mark.promise("P12")
def test_a_key_that_a_newer_message_holds_keeps_the_dead_one_dead(queue: CheckedQueue) -> None:
    [dead] = queue.make_dead("old", dedup_key="key")
    queue.enqueue("newer", dedup_key="key")
    done = queue.call("reset", message_ids=[dead])
    assert outcomes(done) == {dead: "duplicate"}
    assert queue.counts() == (1, 0, 0, 1)
    queue.finish_one()
    assert outcomes(queue.call("reset")) == {dead: "reset"}


@pytest.mark.promise("P12")
def test_a_reset_message_holds_its_key_again(queue: CheckedQueue) -> None:
    [dead] = queue.make_dead("a", dedup_key="key")
    queue.call("reset")
    row = queue.call_one("enqueue", dedup_key="key")
    assert (row.message_id, row.outcome) == (dead, "duplicate")


@pytest.mark.promise("P12")
def test_of_two_dead_messages_with_one_key_the_older_is_reset(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", dedup_key="key")
    done = queue.call("reset", message_ids=list(reversed(ids)))
    assert outcomes(done) == {ids[0]: "reset", ids[1]: "duplicate"}


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_dead_message_that_another_session_resets_is_passed_over(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    ids = queue.make_dead("a", "b")
    with transaction(elsewhere.connection):
        elsewhere.call("reset", message_ids=ids[:1])
        done = queue.call("reset", message_ids=ids)
    assert outcomes(done) == {ids[0]: "not_found", ids[1]: "reset"}
    assert queue.counts() == (2, 0, 0, 0)


@pytest.mark.promise("P17")
def test_a_rolled_back_reset_changes_nothing(connection: Connection, queue: CheckedQueue) -> None:
    queue.make_dead("a", dedup_key="key")
    with rolled_back(connection):
        queue.call("reset")
    assert queue.counts() == (0, 0, 0, 1)
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P10")
def test_no_messages_are_nothing_to_do(queue: CheckedQueue) -> None:
    queue.make_dead("a")
    assert queue.call("reset", message_ids=[]) == []
    assert queue.counts() == (0, 0, 0, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None, 2147483647])
def test_a_number_out_of_range_is_refused_and_nothing_is_reset(
    queue: CheckedQueue, max_messages: int | None
) -> None:
    queue.make_dead("a")
    text = queue.refused("RQ711", "reset", max_messages=max_messages)
    assert "max_messages" in text
    assert queue.counts() == (0, 0, 0, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [1, 10000])
def test_a_number_at_its_bounds_is_taken(queue: CheckedQueue, max_messages: int) -> None:
    queue.make_dead("a", "b")
    done = queue.call("reset", max_messages=max_messages)
    assert len(done) == min(max_messages, 2)


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "message_ids", [[None], [[1, 2], [3, 4]], [1] * 10001], ids=lambda ids: len(ids)
)
def test_a_bad_list_is_refused(queue: CheckedQueue, message_ids: list[Any]) -> None:
    text = queue.refused("RQ711", "reset", message_ids=message_ids)
    assert "message_ids" in text


@pytest.mark.promise("P10")
@pytest.mark.requires("cancel")
def test_only_dead_messages_of_a_type_are_reset(queue: CheckedQueue) -> None:
    ids = [
        message_id
        for message_type in ("mail", "mails", "mail", "Mail", "mail ", "mail", None)
        for message_id in queue.make_dead("a", message_type=message_type)
    ]
    done = queue.call("reset", message_type="mail", max_messages=2)
    assert outcomes(done) == {ids[0]: "reset", ids[2]: "reset"}
    done = queue.call("reset", message_type="mail", max_messages=2)
    assert outcomes(done) == {ids[5]: "reset"}
    assert queue.call("reset", message_type="none such") == []


@pytest.mark.promise("P10")
@pytest.mark.requires("cancel")
def test_only_messages_that_died_before_a_moment_are_reset(queue: CheckedQueue) -> None:
    old = queue.make_dead("a", "b")
    queue.pass_seconds(100)
    new = queue.make_dead("c")
    died = [row.died_at for row in queue.call("list_dead")]
    assert queue.call("reset", died_before=died[0]) == []
    done = queue.call("reset", died_before=died[2])
    assert outcomes(done) == dict.fromkeys(old, "reset")
    assert queue.state_of(new[0]) == "dead"


@pytest.mark.promise("P10")
@pytest.mark.requires("cancel")
def test_type_and_time_of_death_must_both_match(queue: CheckedQueue) -> None:
    [old] = queue.make_dead("a", message_type="mail")
    queue.make_dead("b")
    queue.pass_seconds(100)
    [new] = queue.make_dead("c", message_type="mail")
    died_at = queue.message(new).finished_at
    done = queue.call("reset", message_type="mail", died_before=died_at)
    assert outcomes(done) == {old: "reset"}


@pytest.mark.promise("P15")
@pytest.mark.requires("cancel")
@pytest.mark.parametrize("name", ["message_type", "died_before"])
def test_a_filter_beside_a_list_is_refused(queue: CheckedQueue, name: str) -> None:
    ids = queue.make_dead("a", message_type="mail")
    value = {"message_type": "mail", "died_before": queue.message(ids[0]).enqueued_at}[name]
    text = queue.refused("RQ711", "reset", message_ids=ids, **{name: value})
    assert name in text
    assert queue.counts() == (0, 0, 0, 1)
