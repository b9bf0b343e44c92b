"""Bodies: JSON by default, bytes and text unchanged."""

import dataclasses
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

import rowq
from rowq.bodies import batch_entries, bodies, message_from_json

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MESSAGE = rowq.Message(1, 2, 1, None, None, None, None, NOON, NOON, None)


@pytest.mark.parametrize(
    "data", [0, "", False, [], {}, {"é": ["\0", "😀", 1.5, None]}, b"", b"\0\xff", "a string"]
)
def test_data_roundtrips(data: Any) -> None:
    body, body_binary = bodies(data, None)
    assert (body is None) != (body_binary is None)
    assert dataclasses.replace(MESSAGE, body=body, body_binary=body_binary).data == data


def test_none_data_is_no_body() -> None:
    assert bodies(None, None) == (None, None)
    assert MESSAGE.data is None


def test_text_is_sent_unchanged() -> None:
    assert bodies(None, "{not json") == ("{not json", None)
    expected = f"^the body of message {MESSAGE.message_id} is not JSON: "
    with pytest.raises(json.JSONDecodeError, match=expected):
        _ = dataclasses.replace(MESSAGE, body="{not json").data


UNREADABLE = {
    "[" * 1_000_000 + "]" * 1_000_000: "it is nested too deeply",
    "9" * 5000: "Exceeds the limit",
}
"""Bodies that Python cannot read, and the reasons."""


@pytest.mark.parametrize("body", UNREADABLE, ids=UNREADABLE.values())
def test_unreadable_body_raises_unreadable_body(body: str) -> None:
    expected = f"^the body of message {MESSAGE.message_id} cannot be read: {UNREADABLE[body]}"
    with pytest.raises(rowq.UnreadableBody, match=expected) as raised:
        _ = dataclasses.replace(MESSAGE, body=body).data
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, rowq.RowqError)
    assert raised.value.__cause__ is None
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301 - our own


def test_data_with_text_is_refused() -> None:
    with pytest.raises(rowq.InvalidArgument, match="mutually exclusive"):
        bodies(1, "1")


@pytest.mark.parametrize("data", [object(), float("nan"), {1: {2}}])
def test_data_that_is_not_json_is_refused(data: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match="data is not JSON serializable"):
        bodies(data, None)


def test_batch_entry_omits_defaults() -> None:
    (first, second) = batch_entries(
        [rowq.NewMessage(data={"a": 1}), rowq.NewMessage(data=b"\0", run_at=NOON, priority=0)]
    )
    assert first == {"body": '{"a":1}'}
    assert second == {
        "body_base64": "AA==",
        "run_at": "2024-01-01T12:00:00+00:00",
        "priority": 0,
    }


def test_batch_entry_requires_a_time_zone() -> None:
    with pytest.raises(rowq.InvalidArgument, match="run_at"):
        batch_entries([rowq.NewMessage(run_at=datetime(2024, 1, 1))])  # noqa: DTZ001 - the point


def test_message_from_json_equals_message_from_row() -> None:
    entry = {
        "claim_id": 1,
        "message_id": 2,
        "attempt": 1,
        "message_type": None,
        "headers": {"a": 1},
        "body": None,
        "body_binary": "AP8=",
        "enqueued_at": "2024-01-01T17:45:00+05:45",
        "lease_until": "2024-01-01T12:00:00.123456+00:00",
        "last_error": "x",
    }
    message = message_from_json(entry)
    assert message == rowq.Message(
        *(1, 2, 1, None, {"a": 1}, None, b"\0\xff", NOON, NOON.replace(microsecond=123456), "x")
    )
    assert message.enqueued_at.tzinfo is UTC


def test_results_are_frozen_and_can_be_pickled() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        MESSAGE.attempt = 2  # type: ignore[misc]
    assert not hasattr(MESSAGE, "__dict__")
    assert pickle.loads(pickle.dumps(MESSAGE)) == MESSAGE  # noqa: S301 - our own bytes
