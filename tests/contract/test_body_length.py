"""max_body_length: a body that could not be delivered is refused."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, counts, refused
from tests.helpers.json_text import JsonText
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.slow("bodies of megabytes", on="mariadb")

DEFAULT = 1_048_576
LONGEST_HEADERS = 65_536
# Each counts as 1 character, and takes more bytes inside a JSON string.
WORST_TEXTS = {"control characters": "\x01", "quotes": '"', "three bytes": "日", "accents": "é"}


@pytest.fixture
def short(connection: Connection, queue_name: str) -> CheckedQueue:
    """Return a queue that accepts 10 characters or bytes."""
    return new_queue(connection, queue_name, max_body_length=10)


TOO_LONG = {
    "text": {"body": "é" * 11},
    "binary": {"body_binary": b"\xff" * 11},
    "text and a type": {"body": "é" * 11, "message_type": "t"},
}


@pytest.mark.promise("P15")
@pytest.mark.parametrize("body", TOO_LONG.values(), ids=TOO_LONG)
def test_enqueue_refuses_a_too_long_body(short: CheckedQueue, body: dict[str, object]) -> None:
    text = short.refused("RQ711", "enqueue", **body)
    assert "max_body_length" in text
    assert "11" in text
    assert short.counts() == (0, 0, 0, 0)


TOO_LONG_IN_A_BATCH = {
    "text": {"body": "é" * 11},
    "binary": {"body_base64": "/////////////////w=="},
    "json": {"body": {"number": 12345}},
    "text and a type": {"body": "é" * 11, "message_type": "t"},
    "with a key": {"body": "é" * 11, "dedup_key": "k"},
}


@pytest.mark.promise("P15")
@pytest.mark.parametrize("message", TOO_LONG_IN_A_BATCH.values(), ids=TOO_LONG_IN_A_BATCH)
def test_enqueue_batch_refuses_a_too_long_body_by_position(
    short: CheckedQueue, message: dict[str, object]
) -> None:
    messages = [{"body": "a"}, message, {"body": "b"}]
    text = short.refused("RQ711", "enqueue_batch", messages=messages)
    assert "max_body_length" in text
    assert "message 2" in text
    assert short.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P15")
def test_json_body_counts_as_its_text(connection: Connection, queue_name: str) -> None:
    call(connection, "create_queue", queue_name=queue_name, max_body_length=100)
    messages = [{"body": "a"}, {"body": ["\x01" * 30]}]
    text = refused(connection, "RQ711", "enqueue_batch", queue_name=queue_name, messages=messages)
    assert "max_body_length" in text
    assert "message 2" in text
    assert counts(connection, queue_name) == (0, 0, 0, 0)


@pytest.mark.promise("P20")
def test_body_length_is_in_characters_or_bytes(short: CheckedQueue) -> None:
    short.enqueue("日" * 10)
    short.call_one("enqueue", body_binary=b"\xff" * 10)
    batch = [{"body": "日" * 10}, {"body_base64": "/////////////w=="}]
    short.call("enqueue_batch", messages=batch)
    rows = short.dequeue(10)
    assert [row.body for row in rows] == ["日" * 10, None, "日" * 10, None]
    assert [row.body_binary for row in rows] == [None, b"\xff" * 10, None, b"\xff" * 10]


def test_lowered_max_body_length_applies_to_new_messages(queue: CheckedQueue) -> None:
    queue.enqueue("a" * 20)
    queue.call("alter_queue", max_body_length=10)
    queue.refused("RQ711", "enqueue", body="a" * 20)
    assert [row.body for row in queue.dequeue()] == ["a" * 20]


@pytest.mark.promise("P20")
@pytest.mark.parametrize("character", WORST_TEXTS.values(), ids=WORST_TEXTS)
def test_longest_text_is_returned_by_every_routine(
    queue: CheckedQueue, elsewhere: CheckedQueue, character: str
) -> None:
    body = character * DEFAULT
    [message_id] = queue.enqueue(body, headers={"k": "h" * 60_000})
    queue.refused("RQ711", "enqueue", body=body + "a")
    assert [row.body for row in queue.call("peek")] == [body]
    found = queue.message(message_id)
    assert found.body == body
    waited = elsewhere.call_one("dequeue_wait", wait_seconds=0).messages
    assert [row["body"] for row in waited] == [body]
    queue.call("release", claim_id=waited[0]["claim_id"])
    assert [row.body for row in queue.dequeue()] == [body]


@pytest.mark.promise("P20")
def test_longest_binary_body_is_returned_by_every_routine(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    body = b"\xff" * DEFAULT
    sent = queue.call_one("enqueue", body_binary=body)
    queue.refused("RQ711", "enqueue", body_binary=body + b"a")
    assert [row.body_binary for row in queue.call("peek")] == [body]
    found = queue.message(sent.message_id)
    assert found.body_binary == body
    waited = elsewhere.call_one("dequeue_wait", wait_seconds=0).messages
    assert len(waited[0]["body_binary"]) == (DEFAULT + 2) // 3 * 4
    queue.call("release", claim_id=waited[0]["claim_id"])
    assert [row.body_binary for row in queue.dequeue()] == [body]


@pytest.mark.slow("long messages", ci="mariadb")
@pytest.mark.promise("P02", "P05")
def test_dequeue_wait_limits_a_batch_of_long_messages(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    count = 80
    messages = [{"body": f"{number:02d}" + "x" * 1_000_000} for number in range(count)]
    for start in range(0, count, 10):
        part = messages[start : start + 10]
        queue.call("enqueue_batch", messages=part)
    seen: list[str] = []
    while len(seen) < count:
        waited = elsewhere.call_one("dequeue_wait", batch_size=count, wait_seconds=0).messages
        assert 0 < len(waited) < count
        assert {row["attempt"] for row in waited} == {1}
        seen += [row["body"][:2] for row in waited]
        assert queue.counts() == (count - len(seen), 0, len(waited), 0)
        queue.call("complete", claim_id=waited[0]["claim_id"])
    assert seen == [f"{number:02d}" for number in range(count)]


@pytest.mark.promise("P15")
@pytest.mark.parametrize("character", ["é", "🐘"])
def test_enqueue_refuses_too_long_headers(queue: CheckedQueue, character: str) -> None:
    long = f'{{"k": "{character * (LONGEST_HEADERS - 8)}"}}'
    assert len(long) == LONGEST_HEADERS + 1
    text = queue.refused("RQ711", "enqueue", body="a", headers=JsonText(long))
    assert "headers" in text
    batch = JsonText(f'[{{"body": "a"}}, {{"headers": {long}}}]')
    text = queue.refused("RQ711", "enqueue_batch", messages=batch)
    assert "message 2" in text
    assert queue.counts() == (0, 0, 0, 0)
