"""How a routine is called on MariaDB and MySQL, and how its rows are read."""

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
    given,
    inputs_of,
    read_rows,
    readers_of,
)


@dataclass(frozen=True, slots=True)
class Call:
    """How to call one routine, and how to read what it returns."""

    routine: str
    parameters: Inputs
    readers: Readers

    def text(self, values: list[Any], marks: Iterable[str] = repeat("%s")) -> str:
        """Return the statement, with a mark for every value."""
        # The word keeps the server from taking bytes for a text.
        given = (
            f"_binary {mark}" if isinstance(value, bytes) else mark
            for value, mark in zip(values, marks, strict=False)
        )
        return f"call rowq.{self.routine}({', '.join(given)})"

    def values(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the arguments as the driver quotes them; raises InvalidArgument."""
        return [_spell(*one) for one in given("mysql", self.parameters, arguments)]

    def rows(self, rows: list[Row]) -> list[Row]:
        """Return rows of the driver in the contract's Python types."""
        return read_rows(rows, self.readers)


@cache
def call_of(routine: str) -> Call:
    """Return how to call a routine of the contract, such as dequeue_fast."""
    return Call(routine, inputs_of("mysql", routine), readers_of("mysql", routine, READERS))


def named_call(routine: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a call with marks such as :queue_name, and the values; raises InvalidArgument."""
    call = call_of(routine)
    names = [name for name, _ in call.parameters]
    values, marks = [], []
    for name, value in zip(names, call.values(arguments), strict=True):
        # Drivers differ in how they quote bytes, so they are handed over as a text.
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
