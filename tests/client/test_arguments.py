"""Checks and conversion of arguments before a call."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rowq
from rowq.arguments import check_argument, json_text
from rowq.engines.postgres import calls

# These strings mix what looks like an escaped NUL with what is one.
TRICKY = st.text(alphabet='\\u0\0a"é\n', max_size=12)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=8,
)
NEPAL = timezone(timedelta(hours=5, minutes=45))


@pytest.mark.parametrize(
    ("kind", "given", "checked"),
    [
        ("boolean", True, True),
        ("int32", -(2**31), -(2**31)),
        ("int64", 2**63 - 1, 2**63 - 1),
        ("int64s", (3, 1, 2), [3, 1, 2]),
        ("int64s", [], []),
        ("float", 2, 2.0),
        ("float", Decimal("0.5"), 0.5),
        ("float", -1e100, -1e100),
        ("float", 0, 0.0),
        ("text", "é\0", "é\0"),
        ("binary", bytearray(b"\0\xff"), b"\0\xff"),
        ("binary", memoryview(b"ab"), b"ab"),
        ("json", {"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        (
            "timestamp",
            datetime(2024, 1, 1, 5, 45, tzinfo=NEPAL),
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
    ],
)
def test_valid_value_is_converted_to_its_type(kind: str, given: Any, checked: Any) -> None:
    assert check_argument("x", kind, given) == checked
    assert type(check_argument("x", kind, given)) is type(checked)
    assert check_argument("x", kind, None) is None


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("boolean", 1),
        ("int32", 2**31),
        ("int32", True),
        ("int32", 1.0),
        ("int32", "1"),
        ("int64", 2**63),
        ("int64s", 5),
        ("int64s", "12"),
        ("int64s", [1, None]),
        ("float", "1"),
        ("float", False),
        ("float", float("nan")),
        ("float", float("-inf")),
        ("float", 1e101),
        ("float", -1e200),
        ("float", 5e-324),
        pytest.param("float", 10**400, id="float-too large for a double"),
        ("float", Decimal("1e400")),
        ("text", b"bytes"),
        ("text", 5),
        ("binary", "text"),
        ("json", {1, 2}),
        ("json", float("inf")),
        ("timestamp", datetime(2024, 1, 1)),  # noqa: DTZ001 - that is the point
        ("timestamp", "2024-01-01"),
    ],
)
@pytest.mark.promise("P15")
def test_invalid_value_is_refused_with_its_name(kind: str, given: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match=r"^RQ711 invalid_argument: some_name "):
        check_argument("some_name", kind, given)


def test_long_invalid_value_is_shortened_in_the_error() -> None:
    with pytest.raises(rowq.InvalidArgument) as refused:
        check_argument("x", "int32", "9" * 100_000)
    assert len(str(refused.value)) < 300


@settings(max_examples=300)
@given(JSON_VALUES)
@example(r"\u0000")
@example({"\0": 1})
@example("\\\0")
def test_json_is_compact_and_postgres_refuses_nul(value: Any) -> None:
    text: str | None = None
    with suppress(rowq.InvalidArgument):
        text = json_text("data", value)
    assert text == _plain(value)
    if text is None:
        return
    sent: Any = None
    with suppress(rowq.InvalidArgument):
        sent = calls._spell("headers", "json", [value])
    assert sent == (None if _holds_nul(value) else f"[{text}]")


def _plain(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return None


def _holds_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case list():
            return any(map(_holds_nul, value))
        case dict():
            return any(_holds_nul(part) for pair in value.items() for part in pair)
        case _:
            return False
