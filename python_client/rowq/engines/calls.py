"""Parameters and columns of routines, and conversion of a driver's values, for all engines.

Headers may be JSON that Python cannot read: an integer of thousands of digits, or thousands of
levels. The routines refuse them now, but a table may hold older ones. They must not break the rows
of other messages.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rowq.contract import Routine, load_contract
from rowq.engines.base import Row
from rowq.errors import InvalidArgument
from rowq.messages import UnreadableHeaders

# Matches a JSON string, or a bracket outside strings.
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"|[][{}]')
# Headers in the result of dequeue_wait: array, message, headers.
_HEADERS_DEPTH = 3

Reader = Callable[[Any], Any]
"""Converts a driver's value to the contract's Python type."""
Inputs = tuple[tuple[str, str], ...]
"""Name and contract type of each parameter, in order."""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON column: headers, or the array of dequeue_wait.

    Headers that Python cannot read become UnreadableHeaders.
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
    """Replace the headers in a JSON array of messages by strings of their JSON."""
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
    pieces = [messages[start:end] for start, end in pairwise(cuts)]
    pieces[1::2] = map(json.dumps, pieces[1::2])
    return "".join(pieces)


@dataclass(frozen=True, slots=True)
class Readers:
    """Conversion of a driver's rows to the contract's.

    by_position: position of a column in the driver's result, and its reader. missing: positions in
    the contract's result of columns that the engine lacks; they are None.
    """

    by_position: tuple[tuple[int, Reader], ...]
    missing: tuple[int, ...]


def entry_of(engine: str, routine: str) -> Routine:
    """Return a routine as an engine has it; raises InvalidArgument if the engine lacks it."""
    try:
        return load_contract().of(engine)[routine]
    except KeyError:
        raise InvalidArgument(f"{routine} is not available on {engine}") from None


def inputs_of(engine: str, routine: str) -> Inputs:
    """Return name and contract type of each parameter that a routine has on an engine."""
    return tuple(
        (parameter.name, parameter.type)
        for parameter in entry_of(engine, routine).parameters
        if parameter.direction == "in"
    )


def typed_arguments(
    engine: str, inputs: Inputs, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Yield name, contract type and value of each argument that a routine has on an engine.

    Raises InvalidArgument if a parameter that the engine lacks has a value.
    """
    if len(arguments) > len(inputs):
        known = {name for name, _ in inputs}
        for name, value in arguments.items():
            if value is not None and name not in known:
                raise InvalidArgument(f"{name} is not available on {engine}")
    for name, kind in inputs:
        yield name, kind, arguments[name]


def readers_of(engine: str, routine: str, by_type: Mapping[str, Reader]) -> Readers:
    """Return the readers of a routine's columns; other types need no conversion."""
    columns = entry_of(engine, routine).columns
    return Readers(
        tuple(
            (position, by_type[column.type])
            for position, column in enumerate(columns)
            if column.type in by_type
        ),
        tuple(
            position
            for position, column in enumerate(load_contract().routine(routine).columns)
            if column not in columns
        ),
    )


def read_rows(rows: list[Row], readers: Readers) -> list[Row]:
    """Convert a driver's rows to the contract's columns and Python types."""
    if not (rows and (readers.by_position or readers.missing)):
        return rows
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for position, read in readers.by_position:
        columns[position] = [None if value is None else read(value) for value in columns[position]]
    for position in readers.missing:
        columns.insert(position, [None] * len(rows))
    return list(zip(*columns, strict=True))


def encoded(name: str, text: str, encoding: str = "utf-8") -> bytes:
    """Return the bytes of a str; raises InvalidArgument for an unpaired surrogate."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} is not valid {error.encoding}: {error.reason}") from None


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)


READERS: Mapping[str, Reader] = {
    "boolean": bool,
    "float": float,
    "int64s": json.loads,
    "json": read_json,
    "timestamp": _in_utc,
}
"""Readers by contract type; other types need no conversion."""
