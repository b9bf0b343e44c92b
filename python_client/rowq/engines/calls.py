"""What a routine takes and returns, and how values of a driver are read: all engines share it."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from rowq.arguments import check_argument
from rowq.contract import load_contract
from rowq.engines.base import Row
from rowq.engines.json_columns import read_json
from rowq.errors import InvalidArgument

Reader = Callable[[Any], Any]
"""Makes the contract's Python value of a driver's."""
Readers = tuple[tuple[int, Reader], ...]
"""Place of a column in the result, and its reader."""


def inputs_of(routine: str) -> tuple[tuple[str, str], ...]:
    """Return name and contract type of each parameter of a routine, in order."""
    entry = load_contract().routine(routine)
    return tuple(
        (parameter.name, parameter.type)
        for parameter in entry.parameters
        if parameter.direction == "in"
    )


def readers_of(routine: str, by_type: Mapping[str, Reader]) -> Readers:
    """Return the readers of a routine's columns; a type that has none comes as it should."""
    columns = load_contract().routine(routine).columns
    return tuple(
        (place, by_type[column.type])
        for place, column in enumerate(columns)
        if column.type in by_type
    )


def read_rows(rows: list[Row], readers: Readers) -> list[Row]:
    """Return rows of a driver in the contract's Python types."""
    return [_read(row, readers) for row in rows] if readers else rows


def check_finite(name: str, kind: str, value: Any) -> Any:
    """As check_argument, for an engine that knows no infinite numbers and no NaN."""
    checked = check_argument(name, kind, value)
    if isinstance(checked, float) and not math.isfinite(checked):
        raise InvalidArgument(f"{name} must be a finite number, got {checked}")
    return checked


def encoded(name: str, text: str, encoding: str = "utf-8") -> bytes:
    """Return a text's bytes; raises InvalidArgument for half a character."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} does not fit {error.encoding}: {error.reason}") from None


def _read(row: Row, readers: Readers) -> Row:
    values = list(row)
    for position, read in readers:
        if values[position] is not None:
            values[position] = read(values[position])
    return tuple(values)


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


READERS: Mapping[str, Reader] = {
    "boolean": bool,
    "float": float,
    "json": read_json,
    "timestamp": _in_utc,
}
"""By contract type, for drivers that return everything else as the contract wants it."""
