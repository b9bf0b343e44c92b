"""What a routine takes and returns, and how values of a driver are read: all engines share it.

A producer's headers can be JSON that Python's reader refuses: an integer of thousands of digits, or
thousands of levels. The routines refuse them, but a table may hold older ones. One message's
headers cannot spoil the others' rows.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rowq.contract import Routine, load_contract
from rowq.engines.base import Row
from rowq.errors import InvalidArgument
from rowq.messages import UnreadableHeaders

# This matches a text, or a bracket outside of texts.
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"|[][{}]')
# In dequeue_wait's answer, headers are inside an object in the array.
_HEADERS_DEPTH = 3

Reader = Callable[[Any], Any]
"""Makes the contract's Python value of a driver's."""
Inputs = tuple[tuple[str, str], ...]
"""Name and contract type of each parameter, in order."""


def read_json(text: str | bytes) -> Any:
    """Return a JSON column: a message's headers, or the array of dequeue_wait.

    Headers that Python's reader refuses are UnreadableHeaders.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if not shown.lstrip().startswith("["):
            return UnreadableHeaders(shown, str(error))
    entries = json.loads(_with_headers_as_text(shown))
    for entry in entries:
        if entry["headers"] is not None:
            entry["headers"] = read_json(entry["headers"])
    return entries


def _with_headers_as_text(messages: str) -> str:
    """Return an array of messages whose headers are not objects but the text of these."""
    cuts, depth = [0], 0
    for mark in _MARK.finditer(messages):
        match mark[0]:
            case "{" | "[":
                depth += 1
                if depth == _HEADERS_DEPTH:
                    cuts.append(mark.start())
            case "}" | "]":
                if depth == _HEADERS_DEPTH:
                    cuts.append(mark.end())
                depth -= 1
    cuts.append(len(messages))
    parts = [messages[start:end] for start, end in pairwise(cuts)]
    parts[1::2] = map(json.dumps, parts[1::2])
    return "".join(parts)


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
