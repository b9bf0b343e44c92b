"""enqueue_batch."""

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.test_enqueue import TEN_YEARS
from tests.contract.test_round_trip import TEXTS
from tests.engines.base import Connection, Server
from tests.helpers.calls import Row, bodies, rolled_back
from tests.helpers.queues import CheckedQueue, Connect, SecondSession
from tests.helpers.together import together


def batch(queue: CheckedQueue, *messages: dict[str, Any]) -> list[Row]:
    return queue.call("enqueue_batch", messages=list(messages))


def keyed(*keys: str) -> list[dict[str, Any]]:
    return [{"body": key, "dedup_key": key} for key in keys]


@pytest.mark.promise("P01")
def test_batch_returns_positions_and_ids_in_order(queue: CheckedQueue) -> None:
    rows = batch(queue, *({"body": str(number)} for number in range(20)))
    assert [row.position for row in rows] == list(range(1, 21))
    assert {row.outcome for row in rows} == {"enqueued"}
    leased = queue.dequeue(100)
    assert [row.message_id for row in leased] == [row.message_id for row in rows]
    assert bodies(leased) == [str(number) for number in range(20)]


@pytest.mark.promise("P20")
def test_batch_message_is_delivered_with_all_keys(queue: CheckedQueue) -> None:
    batch(
        queue,
        {
            "body": "hello",
            "message_type": "greeting",
            "headers": {"a": [1, None]},
            "priority": 3,
            "dedup_key": "key",
            "max_attempts": 0,
            "producer_name": "shop ",
        },
    )
    leased = queue.dequeue_one()
    row = queue.message(leased.message_id)
    assert (row.body, row.message_type, row.headers) == ("hello", "greeting", {"a": [1, None]})
    assert (row.priority, row.dedup_key, row.max_attempts) == (3, "key", 0)
    assert row.producer_name == "shop "


@pytest.mark.promise("P05")
def test_null_and_missing_keys_mean_the_default(queue: CheckedQueue) -> None:
    keys = [
        "body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
        "dedup_key", "max_attempts", "producer_name",
    ]  # fmt: skip
    batch(queue, {}, dict.fromkeys(keys))
    for leased in queue.dequeue(2):
        row = queue.message(leased.message_id)
        assert (row.body, row.body_binary, row.headers, row.dedup_key) == (None, None, None, None)
        assert (row.priority, row.max_attempts) == (5, 10)


@pytest.mark.promise("P05")
def test_batch_messages_keep_their_priorities(queue: CheckedQueue) -> None:
    batch(queue, *({"body": str(priority), "priority": priority} for priority in (9, 0, 5)))
    assert bodies(queue.dequeue(3)) == ["0", "5", "9"]


@pytest.mark.promise("P11")
def test_batch_messages_keep_their_delays(queue: CheckedQueue) -> None:
    batch(
        queue,
        {"body": "delayed", "delay_seconds": 60},
        {"body": "at", "run_at": "2030-01-01T00:00:00+05:45"},
        {"body": "past", "run_at": "2020-01-01T00:00:00Z"},
        {"body": "now"},
    )
    assert queue.counts() == (2, 2, 0, 0)
    assert bodies(queue.dequeue(10)) == ["past", "now"]
    queue.pass_seconds(61)
    assert bodies(queue.dequeue(10)) == ["delayed"]


@pytest.mark.promise("P05", "P11")
def test_batch_with_equal_delays_keeps_its_order(
    queue: CheckedQueue,
) -> None:
    keys = ["b", None, "a", None]
    messages = [{"body": str(position), "dedup_key": key} for position, key in enumerate(keys)]
    batch(queue, *({**message, "delay_seconds": 1} for message in messages))
    queue.pass_seconds(2)
    queue.call("promote")
    assert bodies(queue.dequeue(10)) == ["0", "1", "2", "3"]


@pytest.mark.promise("P11")
def test_run_at_without_time_zone_is_utc(queue: CheckedQueue) -> None:
    rows = batch(queue, {"run_at": "2030-01-01T00:00:00"}, {"run_at": "2030-01-01T00:00:00Z"})
    found = [queue.message(row.message_id).due_at for row in rows]
    assert found[0] == found[1]


@pytest.mark.promise("P12")
def test_batch_returns_duplicate_per_message(queue: CheckedQueue) -> None:
    [held] = queue.enqueue("held", dedup_key="b")
    rows = batch(queue, *keyed("a", "b", "c", "a"), {"body": "no key"})
    outcomes = ["enqueued", "duplicate", "enqueued", "duplicate", "enqueued"]
    assert [row.outcome for row in rows] == outcomes
    assert rows[1].message_id == held
    assert rows[3].message_id == rows[0].message_id
    assert bodies(queue.dequeue(10)) == ["held", "a", "c", "no key"]
    assert queue.stored()["message"] == 4


@pytest.mark.promise("P12")
@pytest.mark.requires("genuine")
def test_concurrent_batches_store_one_message_per_key(
    connect: Connect, queue: CheckedQueue
) -> None:
    keys = [f"key {number:03}" for number in range(100)]
    sessions = [connect() for _ in range(4)]
    answers: list[Row] = []

    def produce(session: Connection, turn: int) -> None:
        for step in range(5):
            order = keys[turn * 20 + step :] + keys[: turn * 20 + step]
            messages = keyed(*(order if turn % 2 else reversed(order)))
            answers.extend(batch(queue.via(session), *messages))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(produce, sessions, range(4)))
    assert len(answers) == 4 * 5 * 100
    assert sum(row.outcome == "enqueued" for row in answers) == 100
    assert queue.counts()[0] == 100


@pytest.mark.promise("P01", "P12")
@pytest.mark.requires("genuine")
def test_waiting_batch_enqueues_keys_that_were_rolled_back(
    connection: Connection, second: SecondSession, queue: CheckedQueue
) -> None:
    with rolled_back(connection):
        batch(queue, *keyed("a", "b"))
        waiting = second.start_blocked(lambda own: batch(queue.via(own), *keyed("b", "a")))
    assert [row.outcome for row in waiting.result()] == ["enqueued", "enqueued"]
    assert bodies(queue.dequeue(10)) == ["b", "a"]


@pytest.mark.promise("P01", "P17")
def test_rolled_back_batch_stores_nothing(connection: Connection, queue: CheckedQueue) -> None:
    with rolled_back(connection):
        batch(queue, *keyed("a", "b"), {"delay_seconds": 5})
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P20")
@together(
    ("body", "stored"),
    [
        ("text", "text"),
        ("", ""),
        ('"quoted"', '"quoted"'),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        ([], "[]"),
        ({}, "{}"),
        (None, None),
    ],
)
def test_body_that_is_not_a_string_is_stored_as_json_text(
    queue: CheckedQueue, body: Any, stored: str | None
) -> None:
    batch(queue, {"body": body})
    assert queue.dequeue_one().body == stored


@pytest.mark.promise("P20")
def test_batch_returns_texts_unchanged(queue: CheckedQueue) -> None:
    batch(queue, *({"body": text, "message_type": text, "headers": {text: text}} for text in TEXTS))
    rows = queue.dequeue(100)
    assert bodies(rows) == TEXTS
    assert [row.message_type for row in rows] == TEXTS
    assert [row.headers for row in rows] == [{text: text} for text in TEXTS]


@pytest.mark.promise("P05", "P20")
def test_plain_batch_returns_texts_unchanged_in_order(queue: CheckedQueue) -> None:
    rows = batch(queue, *({"body": text} for text in TEXTS))
    assert [queue.message(row.message_id).body for row in rows] == TEXTS
    assert bodies(queue.dequeue(100)) == TEXTS


@pytest.mark.promise("P20")
@pytest.mark.parametrize("binary", [b"", b"\x00", bytes(range(256)), bytes(1000)])
def test_batch_returns_binary_bodies_unchanged(queue: CheckedQueue, binary: bytes) -> None:
    batch(queue, {"body_base64": base64.b64encode(binary).decode()})
    row = queue.dequeue_one()
    assert (row.body, bytes(row.body_binary)) == (None, binary)


@pytest.mark.promise("P01")
def test_empty_batch_returns_no_rows(queue: CheckedQueue) -> None:
    assert batch(queue) == []


@pytest.mark.promise("P01", "P15")
def test_batch_accepts_10000_messages_and_refuses_10001(queue: CheckedQueue) -> None:
    rows = batch(queue, *({"body": "x"} for _ in range(10000)))
    assert [row.position for row in rows] == list(range(1, 10001))
    queue.refused("RQ711", "enqueue_batch", messages=[{}] * 10001)
    assert queue.counts()[0] == 10000


@pytest.mark.promise("P15")
@pytest.mark.parametrize("messages", [None, {}, "text", 1, True, {"body": "not in an array"}])
def test_enqueue_batch_refuses_anything_but_an_array(queue: CheckedQueue, messages: Any) -> None:
    assert "array" in queue.refused("RQ711", "enqueue_batch", messages=messages)


BEYOND_DOUBLE = {"delay_seconds": 10**400}
INVALID: dict[str, list[Any]] = {
    "priority": [-1, 10, "high", 1.5, True, [1], 1e30],
    "delay_seconds": [-1, TEN_YEARS + 1, "soon", "NaN", "infinity", {}, 1e300],
    "run_at": [
        *("not a time", "2030-13-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "infinity", 5, []),
    ],
    "body_base64": ["not base64!", "eA=", "====", 5],
    "message_type": ["x" * 201, "x" + "🐘" * 201, {"a": 1}, 5],
    "producer_name": ["x" * 201, 5],
    "headers": [[], "text"],
    "dedup_key": ["", "x" * 201, "x" + "🐘" * 201, ["a"], 5],
    "max_attempts": [-1, 10001, "many", 2.5],
    **{key: [1] for key in ("unknown", "Body", "body_binary", "queue_name", "body ")},
}
BAD_MESSAGES: list[tuple[Any, str]] = [
    *zip([None, "text", 1, []], ["object"] * 4, strict=True),
    *(({key: value}, key) for key, values in INVALID.items() for value in values),
    (BEYOND_DOUBLE, "delay_seconds"),
    ({"": 1}, "key"),
    ({"delay_seconds": 1, "run_at": "2030-01-01T00:00:00Z"}, "run_at"),
    ({"body": "x", "body_base64": "eA=="}, "body"),
]


@pytest.mark.promise("P01", "P15")
@together(("message", "named"), BAD_MESSAGES)
def test_enqueue_batch_refuses_an_invalid_message_by_position(
    queue: CheckedQueue, server: Server, message: Any, named: str
) -> None:
    messages = [{"body": "good"}, {"body": "good"}, message, {"body": "good"}]
    text = queue.refused("RQ711", "enqueue_batch", messages=messages)
    if server.product == "mysql" and message == BEYOND_DOUBLE:
        # To MySQL a number beyond the range of a double is invalid JSON.
        assert "messages must be a JSON array" in text
    else:
        assert named in text
        assert "(message 3)" in text
    assert sum(queue.stored().values()) == 0
