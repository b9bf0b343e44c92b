"""Calls and rows on Oracle: the PL/SQL block, its binds and its cursor."""

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
    Reader,
    Readers,
    encoded,
    entry_of,
    inputs_of,
    read_rows,
    readers_of,
    typed_arguments,
)
from rowq.engines.oracle.driver import load_driver
from rowq.errors import InvalidArgument

ROWS = "p_rows"
"""The parameter for the rows of every routine."""

_LONG_TEXTS = {"body", "error", "header_value", "progress"}
_LONG_TYPES = {"json", "int64s"}
_NEVER_EMPTY = {
    "dedup_key": "dedup_key must be 1 to 200 characters",
    "group_key": "group_key must be 1 to 200 characters",
    "on_predecessor_dead": "on_predecessor_dead must be hold, continue or fail",
}
# Oracle takes an empty string for null, so the call would not filter.
_EMPTY_IS_NO_FILTER = {
    (routine, "message_type") for routine in ("cancel_many", "reset", "list_dead", "discard_dead")
}
# Maximum bytes of a bind without a LOB.
_FITS_A_BIND = 32_767
# Rows per fetch: more than a usual batch.
_ROWS_AT_A_TIME = 1000


@dataclass(frozen=True, slots=True)
class Lob:
    """A value that must be sent as a LOB: too long for a bind, or empty and not null."""

    data: str | bytes


@dataclass(frozen=True, slots=True)
class Call:
    """Call of one routine, and conversion of its rows."""

    routine: str
    parameters: Inputs
    columns: tuple[str, ...]
    readers: Readers

    @property
    def text(self) -> str:
        """The PL/SQL block, with a named bind for every parameter."""
        names = [f"p_{name}" for name, _ in self.parameters] + [ROWS]
        return f"begin rowq.{self.routine}({', '.join(f'{n} => :{n}' for n in names)}); end;"

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the binds; raises InvalidArgument for a value that cannot be sent."""
        for name, value in arguments.items():
            if value == "" and (self.routine, name) in _EMPTY_IS_NO_FILTER:
                raise InvalidArgument(f"{name} must be 1 to 200 characters")
        return {
            f"p_{name}": _spell(name, kind, value)
            for name, kind, value in typed_arguments("oracle", self.parameters, arguments)
        }

    def rows(self, rows: list[Row]) -> list[Row]:
        """Convert the driver's rows to the contract's Python types."""
        return read_rows(rows, self.readers)


@cache
def call_of(routine: str) -> Call:
    """Return the call of a routine."""
    columns = entry_of("oracle", routine).columns
    return Call(
        routine,
        inputs_of("oracle", routine),
        tuple(column.type for column in columns),
        readers_of("oracle", routine, _READERS),
    )


def prepare(rows: Any, call: Call) -> None:
    """Let a cursor fetch whole results, LOBs as values and integers exactly."""
    oracledb = load_driver()
    kinds = {oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG}
    kinds |= {oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW}
    types = iter(call.columns)

    def fetched(cursor: Any, metadata: Any) -> Any:
        contract_type = next(types, "")
        if contract_type in ("int32", "int64"):
            return cursor.var(int, arraysize=cursor.arraysize)
        kind = kinds.get(metadata.type_code)
        return kind and cursor.var(kind, arraysize=cursor.arraysize)

    rows.arraysize = rows.prefetchrows = _ROWS_AT_A_TIME
    rows.outputtypehandler = fetched


def kinds_of(call: Call, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the driver's types of binds that it cannot infer from their values."""
    oracledb = load_driver()
    known = {
        "timestamp": oracledb.DB_TYPE_TIMESTAMP,
        "binary": oracledb.DB_TYPE_RAW,
        **dict.fromkeys(("int32", "int64", "float", "boolean"), oracledb.DB_TYPE_NUMBER),
    }
    kinds = {f"p_{name}": known.get(kind) for name, kind in call.parameters}
    return {
        name: kind for name, kind in kinds.items() if kind and not isinstance(values[name], Lob)
    }


def sent(connection: Any, value: Any) -> Any:
    """Return a bind for the driver; create a LOB on the server if needed."""
    if not isinstance(value, Lob):
        return value
    oracledb = load_driver()
    kind = oracledb.DB_TYPE_BLOB if isinstance(value.data, bytes) else oracledb.DB_TYPE_CLOB
    return connection.createlob(kind, value.data or None)


def _spell(name: str, kind: str, value: Any) -> Any:
    checked = check_argument(name, kind, value)
    match checked:
        case bool():
            return int(checked)
        case datetime():
            return checked.replace(tzinfo=None)
        case list():
            return _text(name, kind, json.dumps(checked))
        case str():
            return _text(name, kind, checked)
        case bytes():
            return checked if 0 < len(checked) <= _FITS_A_BIND else Lob(checked)
    return checked


def _text(name: str, kind: str, text: str) -> str | Lob:
    """Return a str for the driver; an empty one needs a LOB, as it would be null."""
    size = len(encoded(name, text))
    is_long = name in _LONG_TEXTS or kind in _LONG_TYPES
    if size == 0 and name in _NEVER_EMPTY:
        raise InvalidArgument(_NEVER_EMPTY[name])
    if is_long and not 0 < size <= _FITS_A_BIND:
        return Lob(text)
    if size > _FITS_A_BIND:
        raise InvalidArgument(f"{name} must be at most {_FITS_A_BIND} bytes, got {size}")
    return text


# The driver has a single number type.
_READERS: Mapping[str, Reader] = {**READERS, "int32": int, "int64": int}
