"""Conversion of bodies, results and the JSON of batches and waits."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from rowq.arguments import Default, check_argument, json_text
from rowq.contract import load_contract
from rowq.errors import InvalidArgument
from rowq.messages import Message, MessageResult, NewMessage
from rowq.options import DEFAULTS, MessageOptions


def bodies(
    data: Any, text: str | None, default: Default | None = None, name: str = "data"
) -> tuple[str | None, bytes | None]:
    """Return `data` or `text` as (body, body_binary).

    Raises InvalidArgument, with `name` for the data, if both are set, or if the data is not JSON
    serializable.
    """
    if text is not None:
        if data is not None:
            raise InvalidArgument("data and text are mutually exclusive")
        return text, None
    if data is None:
        return None, None
    if isinstance(data, bytes | bytearray | memoryview):
        return None, bytes(data)
    return json_text(name, data, default), None


def message_arguments(
    data: Any, text: str | None, options: Mapping[str, Any], default: Default | None
) -> dict[str, Any]:
    """Return the arguments of enqueue or publish for a body and options; raises InvalidArgument."""
    body, body_binary = bodies(data, text, default)
    headers = plain_headers(options["headers"], default)
    return {**options, "body": body, "body_binary": body_binary, "headers": headers}


def plain_headers(
    headers: Mapping[str, Any] | None, default: Default | None
) -> Mapping[str, Any] | None:
    """Return headers with JSON values only, converted by `default`."""
    if headers is None or default is None:
        return headers
    return json.loads(json_text("headers", headers, default))  # type: ignore[no-any-return]


def plain_results(results: Sequence[Any] | None, default: Default | None) -> Sequence[Any] | None:
    """Return results with JSON values only, converted by `default`."""
    if results is None or default is None:
        return results
    return json.loads(json_text("results", results, default))  # type: ignore[no-any-return]


def batch_entries(messages: Iterable[Any], default: Default | None = None) -> list[dict[str, Any]]:
    """Return messages as the objects of a batch's JSON array; raises InvalidArgument."""
    check_batch(messages)
    return [_batch_entry(index, message, default) for index, message in enumerate(messages)]


def check_batch(messages: Iterable[Any]) -> None:
    """Raise InvalidArgument unless `messages` is a list; a mapping, str or bytes is not."""
    if isinstance(messages, str | bytes | bytearray | memoryview | Mapping) or not isinstance(
        messages, Iterable
    ):
        raise InvalidArgument(
            f"messages must be a list of values or rowq.NewMessage, got {type(messages).__name__}"
        )


def _batch_entry(index: int, message: Any, default: Default | None) -> dict[str, Any]:
    """Return a message as an object of a batch."""
    if isinstance(message, NewMessage):
        return _entry(message, f"messages[{index}].data", default)
    if message is None:
        raise InvalidArgument(
            f"messages[{index}] is None; use rowq.NewMessage() for a message without a body"
        )
    try:
        return _entry(NewMessage(data=message), f"messages[{index}]", default)
    except InvalidArgument as error:
        raise InvalidArgument(
            f"{error}; a batch takes JSON values, bytes and rowq.NewMessage"
        ) from error


def _entry(message: NewMessage, name: str, default: Default | None) -> dict[str, Any]:
    body, body_binary = bodies(message.data, message.text, default, name)
    entry: dict[str, Any] = {}
    if body is not None:
        entry["body"] = body
    if body_binary is not None:
        entry["body_base64"] = base64.b64encode(body_binary).decode()
    for key, kind in _keys():
        value = getattr(message, key)
        # enqueue_batch on PostgreSQL has a fast path for messages that are a body alone.
        if value is not None and value != DEFAULTS["MessageOptions"].get(key):
            entry[key] = value if kind is None else _in_json(key, kind, value, default)
    return entry


def _in_json(key: str, kind: str, value: Any, default: Default | None) -> Any:
    """Return an option of a message for the JSON of a batch; raises InvalidArgument."""
    if kind == "json":
        return plain_headers(value, default)
    checked = check_argument(key, kind, value)
    return checked.isoformat() if kind == "timestamp" else checked


@cache
def _keys() -> list[tuple[str, str | None]]:
    """Return each option of a message in a batch, with its contract type if JSON lacks it."""
    kinds = {one.name: one.type for one in load_contract().routine("enqueue").parameters}
    own = {"predecessor_positions": "int64s", "topic": "text"}
    every = {key: kinds[key] for key in MessageOptions.__annotations__} | own
    spelled = {"json", "int64s", "timestamp"}
    return [(key, kind if kind in spelled else None) for key, kind in every.items()]


def message_from_json(entry: Mapping[str, Any]) -> Message:
    """Return an object of dequeue_wait's JSON array as a Message."""
    encoded = entry["body_binary"]
    return Message(
        claim_id=entry["claim_id"],
        message_id=entry["message_id"],
        attempt=entry["attempt"],
        message_type=entry["message_type"],
        headers=entry["headers"],
        body=entry["body"],
        body_binary=None if encoded is None else base64.b64decode(encoded),
        enqueued_at=_utc(entry["enqueued_at"]),
        lease_until=_utc(entry["lease_until"]),
        last_error=entry["last_error"],
    )


def result_from_json(entry: Mapping[str, Any]) -> MessageResult:
    """Return the JSON object of wait_for_result as a MessageResult."""
    finished_at = entry["finished_at"]
    return MessageResult(
        message_id=entry["message_id"],
        state=entry["state"],
        finished_at=None if finished_at is None else _utc(finished_at),
        result=entry["result"],
        last_error=entry["last_error"],
    )


def has_ended(entry: Mapping[str, Any] | None) -> bool:
    """Whether the message has ended, or does not exist."""
    return entry is None or entry["finished_at"] is not None


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
