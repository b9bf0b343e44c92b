"""Texts, headers and binary bodies are returned unchanged, also hostile ones."""

from typing import Any

import pytest

from tests.helpers.calls import bodies
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue

TEXTS = [
    "",
    " ",
    "plain",
    "'; drop table message; --",
    'double " quote',
    "back\\slash \\n \\u0041",
    "100 % %s %(x)s {} $1 :name ?",
    "line\nbreak\r\nand\ttab",
    "Größe naïve",
    "日本語",
    "한국어 \ud7ff\ue000",
    "🐘👩\u200d👩\u200d👧",
    "e\u0301 is not \u00e9",
    "\ufeffbyte order mark, \u202e rtl, \ufffe, \U0010ffff",
    "\x01\x02\x7f",
    "null",
    "{not json",
    " trailing ",
]


@pytest.mark.pitfall("mysql 10")
@pytest.mark.promise("P20")
@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_returned_unchanged(queue: CheckedQueue, text: str) -> None:
    sent = queue.call_one(
        "enqueue", body=text, message_type=text, headers={text: text}, dedup_key=text or None
    )
    short = dialect_of(queue.connection).short_text(text)
    row = queue.message(sent.message_id)
    assert (row.body, row.message_type, row.headers) == (text, short, {text: text})
    assert row.dedup_key == (text or None)
    leased = queue.dequeue_one(worker_name=text)
    assert (leased.body, leased.message_type, leased.headers) == (text, short, {text: text})
    queue.call("retry_later", claim_id=leased.claim_id, delay_seconds=0, error=text)
    assert queue.dequeue_one().last_error == text


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"a": None, "b": True, "c": 1.5, "d": [1, [2]], "e": {"f": "🐘"}},
        {"big": 12345678901234567890},
        {"exact": 0.1},
        {"nested": {"x": {"y": {"z": []}}}},
    ],
)
def test_headers_are_returned_unchanged(queue: CheckedQueue, headers: dict[str, Any]) -> None:
    queue.call_one("enqueue", headers=headers)
    assert queue.dequeue_one().headers == headers


@pytest.mark.promise("P20")
@pytest.mark.parametrize("binary", [b"", b"\x00", bytes(range(256)), b"\xff\xfe\x00text", b"\\x00"])
def test_binary_bodies_are_returned_unchanged(queue: CheckedQueue, binary: bytes) -> None:
    queue.call_one("enqueue", body_binary=binary)
    row = queue.dequeue_one()
    assert (row.body, bytes(row.body_binary)) == (None, binary)


@pytest.mark.promise("P20")
def test_nul_in_a_text_is_refused_or_stored(queue: CheckedQueue) -> None:
    refusal = None
    try:
        queue.call_one("enqueue", body="a\x00b")
    except dialect_of(queue.connection).database_error as error:
        refusal = str(error)
    kept = bodies(queue.dequeue())
    assert kept == ["a\x00b"] if refusal is None else "NUL" in refusal and kept == []


@pytest.mark.slow("bodies of 16 megabytes", on="mariadb", ci="mariadb")
@pytest.mark.pitfall("oracle 6")
@pytest.mark.promise("P20")
def test_bodies_of_16_megabytes_are_returned_unchanged(queue: CheckedQueue) -> None:
    text = "0123456789abcdé🐘" * (1 << 20)
    binary = bytes(range(256)) * (1 << 16)
    queue.call("alter_queue", max_body_length=len(text))
    queue.call_one("enqueue", body=text)
    queue.call_one("enqueue", body_binary=binary)
    [first] = queue.dequeue()
    assert first.body == text
    [second] = queue.dequeue()
    assert bytes(second.body_binary) == binary
    for row in (first, second):
        queue.call("complete", claim_id=row.claim_id)
