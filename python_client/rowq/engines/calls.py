"""What a routine takes and returns, and how values of a driver are read: all engines share it."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rowq.contract import Routine, load_contract
from rowq.engines.base import Row
from rowq.engines.json_columns import read_json
from rowq.errors import InvalidArgument

Reader = Callable[[Any], Any]
"""Makes the contract's Python value of a driver's."""
Inputs = tuple[tuple[str, str], ...]
"""Name and contract type of each parameter, in order."""


@dataclass(frozen=True, slots=True)
class Readers:
    """How rows of a driver become the contract's.

    by_place: place of a column in the driver's result, and its reader. lacking: places in the
    contract's result of the columns that the engine does not have, which are None.
    """

    by_place: tuple[tuple[int, Reader], ...]
    lacking: tuple[int, ...]


def entry_of(engine: str, routine: str) -> Routine:
    """Return a routine as an engine has it.

    Raises:
        InvalidArgument: the engine does not have it yet.
    """
    try:
        return load_contract().of(engine)[routine]
    except KeyError:
        raise InvalidArgument(f"rowq has no {routine} on {engine} yet") from None


def inputs_of(engine: str, routine: str) -> Inputs:
    """Return name and contract type of each parameter that a routine has on an engine."""
    return tuple(
        (parameter.name, parameter.type)
        for parameter in entry_of(engine, routine).parameters
        if parameter.direction == "in"
    )


def given(
    engine: str, inputs: Inputs, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Yield name, contract type and value of each argument that a routine takes on an engine.

    Raises:
        InvalidArgument: a value is given for a parameter that the engine does not have.
    """
    if len(arguments) > len(inputs):
        known = {name for name, _ in inputs}
        for name, value in arguments.items():
            if value is not None and name not in known:
                raise InvalidArgument(f"rowq has no {name} on {engine} yet")
    for name, kind in inputs:
        yield name, kind, arguments[name]


def readers_of(engine: str, routine: str, by_type: Mapping[str, Reader]) -> Readers:
    """Return the readers of a routine's columns; a type that has none comes as it should."""
    whole = load_contract().routine(routine).columns
    there = entry_of(engine, routine).columns
    return Readers(
        tuple(
            (place, by_type[column.type])
            for place, column in enumerate(there)
            if column.type in by_type
        ),
        tuple(place for place, column in enumerate(whole) if column not in there),
    )


def read_rows(rows: list[Row], readers: Readers) -> list[Row]:
    """Return rows of a driver in the contract's columns and Python types."""
    return [_read(row, readers) for row in rows] if readers.by_place or readers.lacking else rows


def encoded(name: str, text: str, encoding: str = "utf-8") -> bytes:
    """Return a text's bytes; raises InvalidArgument for half a character."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} does not fit {error.encoding}: {error.reason}") from None


def _read(row: Row, readers: Readers) -> Row:
    values = list(row)
    for position, read in readers.by_place:
        if values[position] is not None:
            values[position] = read(values[position])
    for position in readers.lacking:
        values.insert(position, None)
    return tuple(values)


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


READERS: Mapping[str, Reader] = {
    "boolean": bool,
    "float": float,
    "int64s": json.loads,
    "json": read_json,
    "timestamp": _in_utc,
}
"""By contract type, for drivers that return everything else as the contract wants it."""
