"""What the client refuses before it sends anything, and in which form it sends the rest."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

import rowq
from rowq.arguments import check_argument

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
def test_a_fitting_value_gets_the_one_form_of_its_type(kind: str, given: Any, checked: Any) -> None:
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
def test_a_misfit_is_refused_by_name_before_it_is_sent(kind: str, given: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match=r"^RQ711 invalid_argument: some_name "):
        check_argument("some_name", kind, given)


def test_a_long_misfit_is_not_repeated_in_full() -> None:
    with pytest.raises(rowq.InvalidArgument) as refused:
        check_argument("x", "int32", "9" * 100_000)
    assert len(str(refused.value)) < 300
