"""How a routine is called on MariaDB and MySQL, and how its rows are read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from rowq.engines.base import Row
from rowq.engines.calls import (
    READERS,
    Inputs,
    Readers,
    check_finite,
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

    def text(self, values: list[Any]) -> str:
        """Return the statement, with a mark for every value."""
        # The word keeps the server from taking bytes for a text.
        marks = ("_binary %s" if isinstance(value, bytes) else "%s" for value in values)
        return f"call rowq.{self.routine}({', '.join(marks)})"

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


def _spell(name: str, kind: str, value: Any) -> Any:
    """Return an argument as the driver quotes it; raises InvalidArgument if it cannot be sent."""
    checked = check_finite(name, kind, value)
    match checked:
        case str():
            encoded(name, checked)
        case datetime():
            return checked.replace(tzinfo=None).isoformat(" ", "microseconds")
        case list():
            return json.dumps(checked)
    return checked
