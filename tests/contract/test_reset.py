"""reset."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P10")
def test_reset_makes_a_dead_message_ready_with_fresh_attempts(queue: CheckedQueue) -> None:
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
def test_reset_message_goes_to_the_tail_of_its_priority(queue: CheckedQueue) -> None:
    queue.make_dead("urgent", priority=0)
    queue.make_dead("first dead", "second dead")
    queue.enqueue("alive")
    queue.call("reset")
    assert queue.take() == ["urgent", "alive", "first dead", "second dead"]


@pytest.mark.promise("P05", "P10")
def test_message_that_died_at_the_front_is_reset_to_the_tail(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.finish_one("release")
    queue.finish_one("fail_now")
    queue.enqueue("b")
    queue.call("reset")
    assert queue.take() == ["b", "a"]


@pytest.mark.promise("P10")
def test_reset_without_ids_resets_the_oldest(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", "c", "d")
    done = queue.call("reset", max_messages=1)
    assert outcomes(done) == {ids[0]: "reset"}
    assert queue.counts() == (1, 0, 0, 3)
    done = queue.call("reset", message_ids=None, max_messages=10000)
    assert outcomes(done) == dict.fromkeys(ids[1:], "reset")
    assert queue.call("reset") == []


@pytest.mark.promise("P10")
def test_reset_with_ids_ignores_max_messages(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b")
    assert queue.call("reset", message_ids=[]) == []
    done = queue.call("reset", message_ids=ids, max_messages=1)
    assert outcomes(done) == dict.fromkeys(ids, "reset")


@pytest.mark.promise("P10")
def test_reset_finds_only_dead_messages(queue: CheckedQueue) -> None:
    [leased] = queue.enqueue("leased")
    queue.dequeue_one()
    [dead] = queue.make_dead("dead")
    [ready] = queue.enqueue("ready")
    ids = [ready, leased, dead, -1]
    done = queue.call("reset", message_ids=ids)
    assert [row.message_id for row in done] == ids
    assert [row.outcome for row in done] == ["not_found", "not_found", "reset", "not_found"]


@pytest.mark.promise("P12")
def test_reset_keeps_a_message_dead_if_its_key_is_taken(queue: CheckedQueue) -> None:
    [dead] = queue.make_dead("old", dedup_key="key")
    queue.enqueue("newer", dedup_key="key")
    done = queue.call("reset", message_ids=[dead])
    assert outcomes(done) == {dead: "duplicate"}
    assert queue.counts() == (1, 0, 0, 1)
    queue.finish_one()
    assert outcomes(queue.call("reset")) == {dead: "reset"}


@pytest.mark.promise("P12")
def test_reset_message_holds_its_dedup_key_again(queue: CheckedQueue) -> None:
    [dead] = queue.make_dead("a", dedup_key="key")
    queue.call("reset")
    row = queue.call_one("enqueue", dedup_key="key")
    assert (row.message_id, row.outcome) == (dead, "duplicate")


@pytest.mark.promise("P12")
def test_reset_of_two_dead_messages_with_one_key_takes_the_older(queue: CheckedQueue) -> None:
    ids = queue.make_dead("a", "b", dedup_key="key")
    done = queue.call("reset", message_ids=list(reversed(ids)))
    assert outcomes(done) == {ids[0]: "reset", ids[1]: "duplicate"}


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_reset_skips_a_message_in_another_sessions_reset(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    ids = queue.make_dead("a", "b")
    with transaction(elsewhere.connection):
        elsewhere.call("reset", message_ids=ids[:1])
        done = queue.call("reset", message_ids=ids)
    assert outcomes(done) == {ids[0]: "not_found", ids[1]: "reset"}
    assert queue.counts() == (2, 0, 0, 0)


@pytest.mark.promise("P17")
def test_rolled_back_reset_changes_nothing(connection: Connection, queue: CheckedQueue) -> None:
    queue.make_dead("a", dedup_key="key")
    with rolled_back(connection):
        queue.call("reset")
    assert queue.counts() == (0, 0, 0, 1)
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("name", "value"),
    [("max_messages", number) for number in (0, -1, 10001, None, 2147483647)]
    + [("message_ids", ids) for ids in ([None], [[1, 2], [3, 4]], [1] * 10001)],
    ids=lambda value: str(value)[:20],
)
def test_reset_refuses_invalid_arguments(queue: CheckedQueue, name: str, value: object) -> None:
    queue.make_dead("a")
    assert name in queue.refused("RQ711", "reset", **{name: value})
    assert queue.counts() == (0, 0, 0, 1)


@pytest.mark.promise("P10")
@pytest.mark.requires("cancel")
def test_reset_filters_by_message_type(queue: CheckedQueue) -> None:
    ids = [
        message_id
        for message_type in ("mail", "mails", "mail", "Mail", "mail ", "mail", None)
        for message_id in queue.make_dead("a", message_type=message_type)
    ]
    done = queue.call("reset", message_type="mail", max_messages=2)
    assert outcomes(done) == {ids[0]: "reset", ids[2]: "reset"}
    done = queue.call("reset", message_type="mail", max_messages=2)
    assert outcomes(done) == {ids[5]: "reset"}
    assert queue.call("reset", message_type="unknown") == []


@pytest.mark.promise("P10")
@pytest.mark.requires("cancel")
def test_reset_filters_by_died_before(queue: CheckedQueue) -> None:
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
def test_reset_requires_both_filters_to_match(queue: CheckedQueue) -> None:
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
def test_reset_refuses_ids_with_a_filter(queue: CheckedQueue, name: str) -> None:
    ids = queue.make_dead("a", message_type="mail")
    value = {"message_type": "mail", "died_before": queue.message(ids[0]).enqueued_at}[name]
    text = queue.refused("RQ711", "reset", message_ids=ids, **{name: value})
    assert name in text
    assert queue.counts() == (0, 0, 0, 1)
