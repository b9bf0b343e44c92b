"""Converts bodies, and the JSON of enqueue_batch and dequeue_wait, from and to Python data."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rowq.arguments import check_argument, json_text
from rowq.errors import InvalidArgument
from rowq.messages import Message, NewMessage


def bodies(data: Any, text: str | None) -> tuple[str | None, bytes | None]:
    """Return `data` or `text` as (body, body_binary).

    Raises InvalidArgument when both are given, or when `data` is no JSON value.
    """
    if text is not None:
        if data is not None:
            raise InvalidArgument("give data or text, not both")
        return text, None
    if data is None:
        return None, None
    if isinstance(data, bytes | bytearray | memoryview):
        return None, bytes(data)
    return json_text("data", data), None


def batch_entry(message: NewMessage) -> dict[str, Any]:
    """Return `message` as one object of enqueue_batch's JSON array, without what is left out."""
    body, body_binary = bodies(message.data, message.text)
    run_at = check_argument("run_at", "timestamp", message.run_at)
    entry = {
        "body": body,
        "body_base64": None if body_binary is None else base64.b64encode(body_binary).decode(),
        "message_type": message.message_type,
        "headers": message.headers,
        "priority": message.priority,
        "delay_seconds": message.delay_seconds,
        "run_at": None if run_at is None else run_at.isoformat(),
        "dedup_key": message.dedup_key,
        "max_attempts": message.max_attempts,
    }
    return {key: value for key, value in entry.items() if value is not None}


def message_from_json(entry: Mapping[str, Any]) -> Message:
    """Return one object of dequeue_wait's JSON array as a Message."""
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


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
