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
    """Wait in a thread, and append the answer or the error."""

    def run() -> None:
        try:
            answers.append(wait(queue, **arguments))
        except dialect_of(queue.connection).database_error as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.promise("P03", "P20")
def test_messages_have_the_columns_of_dequeue_fast(queue: CheckedQueue) -> None:
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
def test_empty_binary_body_is_not_null(queue: CheckedQueue) -> None:
    queue.call_one("enqueue", body_binary=b"")
    messages = wait(queue)
    assert messages is not None
    assert messages[0]["body_binary"] == ""


@pytest.mark.promise("P20")
def test_large_binary_body_is_returned_unchanged(queue: CheckedQueue) -> None:
    body = bytes(range(256)) * 5000
    queue.call("alter_queue", max_body_length=len(body))
    queue.call_one("enqueue", body_binary=body)
    messages = wait(queue)
    assert messages is not None
    assert base64.b64decode(messages[0]["body_binary"], validate=True) == body


@pytest.mark.promise("P05")
def test_messages_are_returned_in_delivery_order(queue: CheckedQueue) -> None:
    for priority in (9, 0, 5, 0):
        queue.enqueue(f"{priority}", priority=priority)
    messages = wait(queue, batch_size=10)
    assert [message["body"] for message in messages or ()] == ["0", "0", "5", "9"]


@pytest.mark.promise("P02")
def test_returned_messages_are_leased_and_committed(
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
def test_wait_returns_null_after_wait_seconds(queue: CheckedQueue, wait_seconds: float) -> None:
    start = time.monotonic()
    assert wait(queue, wait_seconds=wait_seconds) is None
    assert wait_seconds <= time.monotonic() - start < wait_seconds + 10
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P03")
def test_new_message_ends_the_wait(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    answers: list[Any] = []
    start = time.monotonic()
    thread = start_waiting(elsewhere, answers, wait_seconds=60)
    [message_id] = queue.enqueue("awaited")
    thread.join()
    assert [message["message_id"] for message in answers[0]] == [message_id]
    assert time.monotonic() - start < 30


@pytest.mark.promise("P03")
def test_one_message_ends_one_wait_only(connect: Connect, queue: CheckedQueue) -> None:
    answers: list[Any] = []
    threads = [start_waiting(queue.via(connect()), answers, wait_seconds=2) for _ in range(4)]
    queue.enqueue("only one")
    for thread in threads:
        thread.join()
    assert sorted(answer is None for answer in answers) == [False, True, True, True]


@pytest.mark.promise("P11")
def test_due_message_ends_the_wait(queue: CheckedQueue) -> None:
    queue.enqueue("due", delay_seconds=0.2)
    messages = wait(queue, wait_seconds=30)
    assert [message["body"] for message in messages or ()] == ["due"]


@pytest.mark.promise("P18")
def test_resume_ends_the_wait(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.call("pause_queue")
    assert wait(queue, wait_seconds=0.1) is None
    answers: list[Any] = []
    thread = start_waiting(elsewhere, answers, wait_seconds=60)
    queue.call("resume_queue")
    thread.join()
    assert [message["body"] for message in answers[0]] == ["a"]


@pytest.mark.promise("P15")
def test_drop_ends_the_wait(connection: Connection, connect: Connect, queue: CheckedQueue) -> None:
    waiter, answers = connect(), list[Any]()
    thread = start_waiting(queue.via(waiter), answers, wait_seconds=60)

    def dropped() -> bool:
        try:
            queue.call("drop_queue")
        except dialect_of(connection).database_error as error:
            if dialect_of(connection).error(error)[0] != "RQ705":  # A poll was in progress.
                raise
            return False
        return True

    wait_until(dropped, "the queue is dropped")
    thread.join()
    [answer] = answers
    assert isinstance(answer, Exception)
    assert dialect_of(waiter).error(answer)[0] == "RQ701"


@pytest.mark.promise("P15", "P17")
def test_wait_in_a_reading_transaction_is_refused(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("kept")
    dialect = dialect_of(queue.connection)
    with rolled_back(queue.connection), pytest.raises(dialect.database_error) as caught:
        wait(queue, wait_seconds=5)
    number, text = dialect.error(caught.value)
    engines_own = number == "2D000" and "internal_require_autocommit" in str(caught.value)
    assert number == "RQ713" or engines_own, text
    assert elsewhere.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15", "P17")
def test_wait_in_a_writing_transaction_raises_rq713(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    with rolled_back(queue.connection):
        queue.enqueue("uncommitted")
        queue.refused("RQ713", "dequeue_wait")
    assert elsewhere.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P17")
def test_waiting_session_blocks_no_other_session(
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
        ({"batch_size": 1001}, "batch_size"),
        ({"lease_seconds": 86401}, "lease_seconds"),
        ({"worker_name": "x" * 201}, "worker_name"),
    ],
    ids=str,
)
def test_dequeue_wait_refuses_arguments_out_of_range(
    queue: CheckedQueue, given: dict[str, Any], named: str
) -> None:
    queue.enqueue("a")
    assert named in queue.refused("RQ711", "dequeue_wait", **given)
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15")
def test_wait_seconds_accepts_3600(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    assert wait(queue, wait_seconds=3600) is not None
