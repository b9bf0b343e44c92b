"""dequeue_wait."""

import base64
import threading
import time
from datetime import datetime
from typing import Any

import pytest

from rowq.contract import load_contract
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import Row, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue, Connect


def wait(queue: CheckedQueue, **arguments: Any) -> list[dict[str, Any]] | None:
    messages: list[dict[str, Any]] | None
    messages = queue.call_one("dequeue_wait", **arguments).messages
    return messages


def start_waiting(queue: CheckedQueue, answers: list[Any], **arguments: Any) -> threading.Thread:
    """Wait in a thread, and return once the session is at it."""

    def run() -> None:
        try:
            answers.append(wait(queue, **arguments))
        except dialect_of(queue.connection).database_error as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.promise("P03", "P20")
def test_messages_come_as_rows_of_dequeue_fast_in_one_json_array(queue: CheckedQueue) -> None:
    queue.call_one("enqueue", body="🐘", headers={"a": [1]}, message_type="type")
    queue.call_one("enqueue", body_binary=bytes(range(256)))
    queue.call_one("enqueue")
    messages = wait(queue, batch_size=10, worker_name="w", lease_seconds=60)
    assert messages is not None
    columns = [column.name for column in load_contract().routines["dequeue_fast"].columns]
    assert [sorted(message) for message in messages] == [sorted(columns)] * 3
    text, binary, none = messages
    assert (text["body"], text["body_binary"]) == ("🐘", None)
    assert (text["headers"], text["message_type"], text["attempt"]) == ({"a": [1]}, "type", 1)
    assert base64.b64decode(binary["body_binary"], validate=True) == bytes(range(256))
    assert (none["body"], none["body_binary"], none["headers"]) == (None, None, None)
    row = queue.message(text["message_id"])
    assert (row.claim_id, row.worker_name) == (text["claim_id"], "w")
    assert datetime.fromisoformat(text["lease_until"]) == row.lease_until
    assert datetime.fromisoformat(text["enqueued_at"]) == row.enqueued_at


@pytest.mark.promise("P20")
def test_an_empty_binary_body_is_not_a_missing_one(queue: CheckedQueue) -> None:
    queue.call_one("enqueue", body_binary=b"")
    messages = wait(queue)
    assert messages is not None
    assert messages[0]["body_binary"] == ""


@pytest.mark.promise("P20")
def test_a_large_binary_body_comes_out_as_it_went_in(queue: CheckedQueue) -> None:
    body = bytes(range(256)) * 5000
    queue.call("alter_queue", max_body_length=len(body))
    queue.call_one("enqueue", body_binary=body)
    messages = wait(queue)
    assert messages is not None
    assert base64.b64decode(messages[0]["body_binary"], validate=True) == body


@pytest.mark.promise("P05")
def test_messages_come_in_order(queue: CheckedQueue) -> None:
    for priority in (9, 0, 5, 0):
        queue.enqueue(f"{priority}", priority=priority)
    messages = wait(queue, batch_size=10)
    assert [message["body"] for message in messages or ()] == ["0", "0", "5", "9"]


@pytest.mark.promise("P02")
def test_what_was_delivered_is_leased_for_good(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a")
    messages = wait(queue)
    assert messages is not None
    assert elsewhere.counts() == (0, 0, 1, 0)
    rows = elsewhere.call("complete", claim_id=messages[0]["claim_id"])
    assert [row.outcome for row in rows] == ["completed"]


@pytest.mark.promise("P17")
@pytest.mark.parametrize("wait_seconds", [0, 0.3])
def test_null_comes_when_the_time_is_up(queue: CheckedQueue, wait_seconds: float) -> None:
    start = time.monotonic()
    assert wait(queue, wait_seconds=wait_seconds) is None
    assert wait_seconds <= time.monotonic() - start < wait_seconds + 10
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P03")
def test_a_message_that_comes_later_ends_the_wait(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    answers: list[Any] = []
    start = time.monotonic()
    thread = start_waiting(elsewhere, answers, wait_seconds=60)
    [message_id] = queue.enqueue("awaited")
    thread.join()
    assert [message["message_id"] for message in answers[0]] == [message_id]
    assert time.monotonic() - start < 30


@pytest.mark.promise("P03")
def test_one_message_ends_one_wait(connect: Connect, queue: CheckedQueue) -> None:
    answers: list[Any] = []
    threads = [start_waiting(queue.via(connect()), answers, wait_seconds=2) for _ in range(4)]
    queue.enqueue("only one")
    for thread in threads:
        thread.join()
    assert sorted(answer is None for answer in answers) == [False, True, True, True]


@pytest.mark.promise("P11")
def test_a_message_that_becomes_due_ends_the_wait(queue: CheckedQueue) -> None:
    queue.enqueue("due", delay_seconds=0.2)
    messages = wait(queue, wait_seconds=30)
    assert [message["body"] for message in messages or ()] == ["due"]


@pytest.mark.promise("P18")
def test_a_queue_that_is_resumed_ends_the_wait(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a")
    queue.call("pause_queue")
    assert wait(queue, wait_seconds=0.1) is None
    answers: list[Any] = []
    thread = start_waiting(elsewhere, answers, wait_seconds=60)
    queue.call("resume_queue")
    thread.join()
    assert [message["body"] for message in answers[0]] == ["a"]


@pytest.mark.promise("P15")
def test_a_queue_that_is_dropped_ends_the_wait(
    connection: Connection, connect: Connect, queue: CheckedQueue
) -> None:
    waiter, answers = connect(), list[Any]()
    thread = start_waiting(queue.via(waiter), answers, wait_seconds=60)

    def dropped() -> bool:
        try:
            queue.call("drop_queue")
        except dialect_of(connection).database_error as error:
            if dialect_of(connection).error(error)[0] != "RQ705":  # A look was under way.
                raise
            return False
        return True

    wait_until(dropped, "the queue is dropped")
    thread.join()
    [answer] = answers
    assert isinstance(answer, Exception)
    assert dialect_of(waiter).error(answer)[0] == "RQ701"


def _refused_in_transaction(queue: CheckedQueue) -> None:
    dialect = dialect_of(queue.connection)
    with pytest.raises(dialect.database_error) as caught:
        wait(queue, wait_seconds=5)
    number, text = dialect.error(caught.value)
    engines_own = number == "2D000" and "internal_require_autocommit" in str(caught.value)
    assert number == "RQ713" or engines_own, text


@pytest.mark.promise("P15", "P17")
def test_it_refuses_to_wait_inside_a_transaction_that_has_only_read(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("kept")
    with rolled_back(queue.connection):
        _refused_in_transaction(queue)
    assert elsewhere.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15", "P17")
def test_it_refuses_to_wait_inside_a_transaction_that_has_written_and_commits_nothing_of_it(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    with rolled_back(queue.connection):
        queue.enqueue("uncommitted")
        _refused_in_transaction(queue)
    assert elsewhere.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P15", "P17")
def test_a_transaction_that_has_written_is_told_by_number(queue: CheckedQueue) -> None:
    with rolled_back(queue.connection):
        queue.enqueue("uncommitted")
        queue.refused("RQ713", "dequeue_wait")


@pytest.mark.promise("P17")
def test_other_sessions_work_on_while_one_waits(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    answers: list[Any] = []
    thread = start_waiting(elsewhere, answers, wait_seconds=1)
    other = queue.another()
    with transaction(queue.connection):
        other.enqueue("a")
        row: Row = other.dequeue_one()
        other.call("complete", claim_id=row.claim_id)
    thread.join()
    assert answers == [None]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"wait_seconds": -0.001}, "wait_seconds"),
        ({"wait_seconds": 3600.001}, "wait_seconds"),
        ({"wait_seconds": None}, "wait_seconds"),
        ({"wait_seconds": float("nan")}, "wait_seconds"),
        ({"wait_seconds": float("inf")}, "wait_seconds"),
        ({"wait_seconds": float("-inf")}, "wait_seconds"),
        ({"wait_seconds": 1e300}, "wait_seconds"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 1001}, "batch_size"),
        ({"batch_size": None}, "batch_size"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"lease_seconds": 86401}, "lease_seconds"),
        ({"worker_name": "x" * 201}, "worker_name"),
    ],
    ids=str,
)
def test_an_argument_out_of_range_is_refused_and_nothing_is_leased(
    queue: CheckedQueue, given: dict[str, Any], named: str
) -> None:
    queue.enqueue("a")
    assert named in queue.refused("RQ711", "dequeue_wait", **given)
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15")
def test_the_longest_wait_is_taken(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    assert wait(queue, wait_seconds=3600) is not None
