"""Argument checks of the queue in memory."""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rowq.arguments import check_argument
from rowq.contract import load_contract
from rowq.errors import InvalidArgument

_TEN_YEARS_SECONDS = 315_360_000

_RANGES: Mapping[str, tuple[float, float]] = {
    "priority": (0, 9),
    "delay_seconds": (0, _TEN_YEARS_SECONDS),
    "expire_seconds": (0.001, _TEN_YEARS_SECONDS),
    "max_attempts": (0, 10_000),
    "batch_size": (1, 10_000),
    "lease_seconds": (1, 86_400),
    "wait_seconds": (0, 3600),
    "max_messages": (1, 10_000),
    "max_claims": (1, 10_000),
    "max_count": (1, 100_000_000),
    "max_queues": (1, 10_000),
    "backoff_base_seconds": (0, 86_400),
    "backoff_factor": (1, 10),
    "backoff_cap_seconds": (0, 31_536_000),
    "backoff_jitter": (0, 1),
    "max_body_length": (1, 33_554_432),
    "group_limit": (1, 100),
    "result_seconds": (0, 31_536_000),
}
_LENGTHS: Mapping[str, tuple[int, int]] = {
    "queue_name": (1, 100),
    "message_type": (0, 200),
    "worker_name": (0, 200),
    "producer_name": (0, 200),
    "dedup_key": (1, 200),
    "group_key": (1, 200),
    "header_name": (1, 200),
    "message_ids": (0, 10_000),
    "predecessor_ids": (0, 10_000),
    "messages": (0, 10_000),
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "group_after_dead": ("continue", "hold"),
    "on_predecessor_dead": ("hold", "continue", "fail"),
}
_LIMITS = {
    **dict.fromkeys(("complete_and_dequeue", "dequeue_fast", "dequeue_wait"), "batch_size"),
    "peek": "max_messages",
}
_MOST_AT_A_TIME = 1000
_WORD = r"[A-Za-z0-9_-]+"
_TOPIC = re.compile(rf"{_WORD}(\.{_WORD})*")
_PATTERN = re.compile(rf"#|(?:{_WORD}|\*)(?:\.(?:{_WORD}|\*))*(?:\.#)?")


def checked(routine: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call in the contract's Python types; raises InvalidArgument."""
    entry = load_contract().routine(routine)
    values: dict[str, Any] = {}
    for one in entry.parameters:
        if one.direction != "in":
            continue
        value = check_argument(one.name, one.type, arguments.get(one.name))
        if value is None and one.default != "null" and one.type != "boolean":
            raise InvalidArgument(f"{one.name} is required")
        values[one.name] = json.loads(value) if one.type == "json" and value else value
    # Only alter_message takes 0, which removes the expiry.
    is_removed = routine == "alter_message" and values["expire_seconds"] == 0
    check_values({**values, "expire_seconds": None} if is_removed else values)
    limit = _LIMITS.get(routine)
    if limit and values[limit] > _MOST_AT_A_TIME:
        raise InvalidArgument(f"{limit} must be between 1 and {_MOST_AT_A_TIME}")
    return values


def check_values(arguments: Mapping[str, Any]) -> None:
    """Refuse values out of range, in arguments of a call or keys of a message."""
    for name, value in arguments.items():
        if value is not None and (error := _error(name, value)):
            raise InvalidArgument(f"{name} must be {error}")


def _error(name: str, value: Any) -> str | None:
    """Return the requirement that an argument breaks, or None."""
    if name == "headers":
        return None if isinstance(value, dict) else "an object"
    if name in _CHOICES:
        return None if value in _CHOICES[name] else f"one of {', '.join(_CHOICES[name])}"
    if name in _RANGES:
        least, most = _RANGES[name]
        return None if least <= value <= most else f"between {least} and {most}, got {value}"
    shortest, longest = _LENGTHS.get(name, (0, math.inf))
    is_fit = name not in _LENGTHS or shortest <= len(value) <= longest
    return None if is_fit else f"{shortest} to {longest} long"


def check_message(arguments: Mapping[str, Any], now: datetime, longest_body: int | None) -> None:
    """Refuse a message that enqueue or publish would refuse.

    longest_body: the queue's max_body_length; None without a queue.
    """
    check_values(arguments)
    body, binary, run_at = (arguments.get(name) for name in ("body", "body_binary", "run_at"))
    if body is not None and binary is not None:
        raise InvalidArgument("body and body_binary are mutually exclusive")
    if run_at is not None and arguments.get("delay_seconds") is not None:
        raise InvalidArgument("delay_seconds and run_at are mutually exclusive")
    if run_at is not None and run_at > now + timedelta(days=3650):
        raise InvalidArgument("run_at must be within the next 10 years")
    length = len(body if body is not None else binary or b"")
    if longest_body is not None and length > longest_body:
        raise InvalidArgument(f"body must be at most {longest_body} characters (max_body_length)")


def check_topic(topic: str) -> None:
    """Refuse an invalid topic."""
    if len(topic) > 200 or not _TOPIC.fullmatch(topic):
        raise InvalidArgument(f"topic must be words with dots between them, got {topic!r:.100}")


def topic_matcher(pattern: str) -> re.Pattern[str]:
    """Return a pattern for topics that match; raises InvalidArgument."""
    if len(pattern) > 200 or not _PATTERN.fullmatch(pattern):
        raise InvalidArgument(f"topic_pattern must be a topic, * or # in it, got {pattern!r:.100}")
    if pattern == "#":
        return re.compile(".*")
    prefix, suffix = (pattern[:-2], r"(\..*)?") if pattern.endswith(".#") else (pattern, "")
    words = (_WORD if word == "*" else re.escape(word) for word in prefix.split("."))
    return re.compile(r"\.".join(words) + suffix)
