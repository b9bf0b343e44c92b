"""Calls and rows on SQL Server."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
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

# ODBC's numbers for SQL types, as in pyodbc; long values have two numbers.
_BIT, _TINYINT, _SMALLINT, _INTEGER, _BIGINT, _DOUBLE, _TIMESTAMP = -7, -6, 5, 4, -5, 8, 93
_VARCHAR, _NVARCHAR, _LONG_NVARCHAR, _VARBINARY, _LONG_VARBINARY = 12, -9, -10, -3, -4

RESULT_TYPES = (
    *(_BIT, _TINYINT, _SMALLINT, _INTEGER, _BIGINT, _DOUBLE, _TIMESTAMP),
    *(_VARCHAR, _NVARCHAR, _LONG_NVARCHAR, _VARBINARY, _LONG_VARBINARY),
)

Binding = tuple[int, int, int]
"""ODBC type, length and digits; length 0 means (max)."""

# Timestamps are sent as text that every language and date format of a session reads alike:
# drivers bind different numbers of fractional digits.
_BINDINGS: dict[str, Binding] = {
    "boolean": (_BIT, 0, 0),
    "int32": (_INTEGER, 0, 0),
    "int64": (_BIGINT, 0, 0),
    "int64s": (_NVARCHAR, 0, 0),
    "float": (_DOUBLE, 0, 0),
    "text": (_NVARCHAR, 0, 0),
    "binary": (_VARBINARY, 0, 0),
    "json": (_NVARCHAR, 0, 0),
    "timestamp": (_NVARCHAR, 40, 0),
}
# FreeTDS sends nvarchar(max) and varbinary(max) only as the older types. As the newer ones it
# silently truncates text after 4,000 characters and sends no bytes at all.
_FREETDS = {(_NVARCHAR, 0, 0): (_LONG_NVARCHAR, 0, 0), (_VARBINARY, 0, 0): (_LONG_VARBINARY, 0, 0)}


@dataclass(frozen=True, slots=True)
class Call:
    """Call of one routine, and conversion of its rows.

    bindings: types of the parameters for Microsoft's drivers, freetds_bindings: for FreeTDS.
    """

    text: str
    parameters: Inputs
    bindings: list[Binding]
    freetds_bindings: list[Binding]
    readers: Readers

    def values(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the arguments as the driver binds them; raises InvalidArgument."""
        return [_spell(*one) for one in typed_arguments("sqlserver", self.parameters, arguments)]

    def rows(self, rows: list[Row]) -> list[Row]:
        """Convert the driver's rows to the contract's Python types."""
        return read_rows(rows, self.readers)


@cache
def call_of(routine: str) -> Call:
    """Return the call of a routine, such as dequeue_fast."""
    parameters = inputs_of("sqlserver", routine)
    marks = ", ".join(f"@{name} = ?" for name, _ in parameters)
    bindings = [_BINDINGS[kind] for _, kind in parameters]
    return Call(
        text=f"exec rowq.{procedure_name(routine)} {marks}".rstrip(),
        parameters=parameters,
        bindings=bindings,
        freetds_bindings=[_FREETDS.get(binding, binding) for binding in bindings],
        readers=readers_of("sqlserver", routine, READERS),
    )


def procedure_name(routine: str) -> str:
    """Return a routine's name in the database: DequeueFast for dequeue_fast."""
    return "".join(word.capitalize() for word in routine.split("_"))


def _spell(name: str, kind: str, value: Any) -> Any:
    """Return an argument as the driver binds it; raises InvalidArgument if it cannot be sent."""
    checked = check_argument(name, kind, value)
    match checked:
        case str():
            encoded(name, checked, "utf-16-le")
        case datetime():
            return checked.replace(tzinfo=None).isoformat("T", "microseconds")
        case list():
            return json.dumps(checked)
    return checked
