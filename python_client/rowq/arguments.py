"""Checks of arguments against the contract's types, before a call is sent."""

import json
import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from operator import index
from typing import Any, SupportsFloat

from rowq.contract import Routine
from rowq.errors import InvalidArgument

Default = Callable[[Any], Any]
"""Converts a value that is not JSON serializable, or raises TypeError, as in json.dumps."""


def _encoder(default: Default | None) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
    )


_ENCODER = _encoder(None)


def check_argument(name: str, contract_type: str, value: Any) -> Any:
    """Return `value` as the Python type of `contract_type`; None stays None.

    json becomes JSON text, timestamp an aware datetime in UTC, int64s a list. Raises
    InvalidArgument with the parameter's name if the value has another type or is out of range.
    """
    return None if value is None else _CHECKS[contract_type](name, value)


def plain_arguments(routine: Routine, queue_name: str) -> dict[str, Any]:
    """Return a queue's name, and a small value for each other required parameter."""
    return {
        one.name: queue_name if one.name == "queue_name" else _PLAIN[one.type]
        for one in routine.parameters
        if one.direction == "in" and (one.name == "queue_name" or one.default is None)
    }


def json_text(name: str, value: Any, default: Default | None = None) -> str:
    """Return `value` as compact JSON; raises InvalidArgument if it is not JSON serializable.

    default: converts other values, as in json.dumps.
    """
    try:
        return (_encoder(default) if default else _ENCODER).encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        if default is None and isinstance(error, TypeError) and (found := _foreign(name, value)):
            place, kind = found
            raise InvalidArgument(
                f"{name} is not JSON serializable: {place} is a {kind};"
                " pass default=str to rowq.connect or rowq.Queue"
            ) from error
        raise InvalidArgument(f"{name} is not JSON serializable: {error}") from error


def _foreign(name: str, value: Any) -> tuple[str, str] | None:
    """Return path and type of the first value inside `value` that JSON does not support."""
    inner: Iterable[tuple[Any, Any]]
    match value:
        case None | str() | int() | float():
            return None
        case dict():
            inner = value.items()
        case list() | tuple():
            inner = enumerate(value)
        case _:
            return name, type(value).__name__
    found = (_foreign(f"{name}[{key!r:.100}]", item) for key, item in inner)
    return next(filter(None, found), None)


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} must be true or false, got {value!r:.100}")
    return value


def _integer(bits: int) -> Callable[[str, Any], int]:
    limit = 1 << (bits - 1)

    def check(name: str, value: Any) -> int:
        try:
            number = index(value)
        except TypeError:
            raise InvalidArgument(f"{name} must be an integer, got {value!r:.100}") from None
        if isinstance(value, bool) or not -limit <= number < limit:
            raise InvalidArgument(f"{name} must be a {bits}-bit integer, got {value!r:.100}")
        return number

    return check


def _integers(name: str, value: Any) -> list[int]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise InvalidArgument(f"{name} must be a list of integers, got {value!r:.100}")
    return [_int64(name, item) for item in value]


def _float(name: str, value: Any) -> float:
    if not isinstance(value, SupportsFloat) or isinstance(value, bool):
        raise InvalidArgument(f"{name} must be a number, got {value!r:.100}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidArgument(f"{name} must be a finite number, got {number}")
    if number and not _SMALLEST <= abs(number) <= _LARGEST:
        raise InvalidArgument(
            f"{name} must be 0, or have a size between {_SMALLEST} and {_LARGEST}, got {number}"
        )
    return number


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be a str, got {value!r:.100}")
    return value


def _binary(name: str, value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidArgument(f"{name} must be bytes, got {value!r:.100}")
    return bytes(value)


def _timestamp(name: str, value: Any) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidArgument(f"{name} must be a datetime with a time zone, got {value!r:.100}")
    return value.astimezone(UTC)


_int64 = _integer(64)

_SMALLEST, _LARGEST = 1e-100, 1e100
"""Every engine stores numbers of these sizes. Oracle's limit is 1e126."""

_PLAIN: dict[str, Any] = {
    "boolean": False,
    "int32": 1,
    "int64": 1,
    "int64s": [1],
    "float": 0.0,
    "text": "",
    "binary": b"",
    "json": [],
    "timestamp": datetime(2000, 1, 1, tzinfo=UTC),
}

_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "boolean": _boolean,
    "int32": _integer(32),
    "int64": _int64,
    "int64s": _integers,
    "float": _float,
    "text": _text,
    "binary": _binary,
    "json": json_text,
    "timestamp": _timestamp,
}
