"""Calls and rows on MariaDB and MySQL."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import repeat
from typing import Any

from rowq.arguments import check_argument
from rowq.engines.base import Row
from rowq.engines.calls import (
    READERS,
    Inputs,
    Readers,
    encoded,
    inputs_of,
    read_rows,
    readers_of,
    typed_arguments,
)


@dataclass(frozen=True, slots=True)
class Call:
    """Call of one routine, and conversion of its rows."""

    routine: str
    parameters: Inputs
    readers: Readers

    def text(self, values: list[Any], marks: Iterable[str] = repeat("%s")) -> str:
        """Return the statement, with a placeholder for every value."""
        # Without _binary the server takes bytes for text.
        placeholders = (
            f"_binary {mark}" if isinstance(value, bytes) else mark
            for value, mark in zip(values, marks, strict=False)
        )
        return f"call rowq.{self.routine}({', '.join(placeholders)})"

    def values(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the arguments as the driver quotes them; raises InvalidArgument."""
        return [_spell(*one) for one in typed_arguments("mysql", self.parameters, arguments)]

    def rows(self, rows: list[Row]) -> list[Row]:
        """Convert the driver's rows to the contract's Python types."""
        return read_rows(rows, self.readers)


@cache
def call_of(routine: str) -> Call:
    """Return the call of a routine, such as dequeue_fast."""
    return Call(routine, inputs_of("mysql", routine), readers_of("mysql", routine, READERS))


def named_call(routine: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a call with placeholders such as :queue_name, and its values."""
    call = call_of(routine)
    names = [name for name, _ in call.parameters]
    values, marks = [], []
    for name, value in zip(names, call.values(arguments), strict=True):
        # Drivers quote bytes differently, so pass them as hex digits.
        is_binary = isinstance(value, bytes)
        marks.append(f"unhex(:{name})" if is_binary else f":{name}")
        values.append(value.hex() if is_binary else value)
    return call.text(values, marks), dict(zip(names, values, strict=True))


def _spell(name: str, kind: str, value: Any) -> Any:
    """Return an argument as the driver quotes it; raises InvalidArgument if it cannot be sent."""
    checked = check_argument(name, kind, value)
    match checked:
        case str():
            encoded(name, checked)
        case datetime():
            return checked.replace(tzinfo=None).isoformat(" ", "microseconds")
        case list():
            return json.dumps(checked)
    return checked
