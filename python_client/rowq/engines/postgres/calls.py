"""Calls and rows on PostgreSQL.

The text of a call is fixed per routine and casts each parameter to its type, and values are sent as
text of unknown type. So psycopg prepares one statement per routine, whichever values are null.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from rowq.arguments import check_argument
from rowq.contract import load_contract
from rowq.engines.base import Row
from rowq.engines.calls import (
    Inputs,
    Reader,
    Readers,
    encoded,
    entry_of,
    inputs_of,
    read_json,
    read_rows,
    readers_of,
    typed_arguments,
)
from rowq.engines.postgres.driver import load_driver
from rowq.errors import InvalidArgument

# The search path affects these type names; the other types are keywords.
_NAMED_TYPES = {"text", "bytea", "jsonb"}
_JSONB = 3802
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class Call:
    """Call of one routine, and conversion of its rows.

    text: the statement with placeholders. is_procedure: whether it cannot return JSON as text.
    """

    text: str
    parameters: Inputs
    readers: Readers
    is_procedure: bool

    def values(self, arguments: Mapping[str, Any]) -> list[str | bytes | None]:
        """Return the arguments as they are sent; raises InvalidArgument."""
        return [_spell(*one) for one in typed_arguments("postgres", self.parameters, arguments)]

    def use_reader(self, cursor: Any) -> None:
        """Let a cursor read the JSON of a procedure regardless of the connection's adapters."""
        if self.is_procedure:
            cursor.adapters.register_loader(_JSONB, _jsonb_loader())

    def rows(self, rows: list[Row]) -> list[Row]:
        """Convert the driver's rows to the contract's Python types."""
        return read_rows(rows, self.readers)


@cache
def call_of(routine: str) -> Call:
    """Return the call of a routine, such as dequeue_fast."""
    entry = entry_of("postgres", routine)
    parameters = inputs_of("postgres", routine)
    text = text_of(routine, lambda _position, _name, type_name: f"%s::{type_name}")
    is_procedure = entry.kind == "procedure"
    by_type = READERS if is_procedure else {**READERS, "json": read_json}
    return Call(text, parameters, readers_of("postgres", routine, by_type), is_procedure)


def text_of(routine: str, mark: Callable[[int, str, str], str]) -> str:
    """Return the statement that calls a routine; a function returns JSON as text.

    An adapter of the caller's connection may refuse JSON that read_json accepts.

    Args:
        routine: its name in the contract.
        mark: returns the placeholder for a parameter's position from 1, name and SQL type.
    """
    types = load_contract().types
    entry = entry_of("postgres", routine)
    parameters = ", ".join(
        f"p_{name} => {mark(position, name, _type_name(types[kind]['postgres']))}"
        for position, (name, kind) in enumerate(inputs_of("postgres", routine), start=1)
    )
    if entry.kind == "procedure":
        return f"call rowq.{routine}({parameters})"
    columns = ", ".join(
        f"{one.name}::pg_catalog.text" if one.type == "json" else one.name for one in entry.columns
    )
    return f"select {columns} from rowq.{routine}({parameters})"  # noqa: S608 - from the contract


def values_of(routine: str, arguments: Mapping[str, Any]) -> dict[str, str | bytes | None]:
    """Return the arguments of a call as str and bytes; raises InvalidArgument.

    Refuse an unpaired surrogate here, because the drivers raise different errors for it.
    """
    values: dict[str, str | bytes | None] = {}
    for name, kind, value in typed_arguments("postgres", inputs_of("postgres", routine), arguments):
        values[name] = spelled = _spell(name, kind, value)
        if isinstance(spelled, str):
            encoded(name, spelled)
    return values


def named_call(
    routine: str, arguments: Mapping[str, Any]
) -> tuple[str, dict[str, str | bytes | None]]:
    """Return a call with placeholders such as :queue_name, and its values."""
    return _named(routine), values_of(routine, arguments)


@cache
def _named(routine: str) -> str:
    return text_of(routine, lambda _position, name, type_name: f"cast(:{name} as {type_name})")


@cache
def _jsonb_loader() -> type[Any]:
    class JsonbLoader(load_driver().adapt.Loader):  # type: ignore[misc]
        format = load_driver().pq.Format.BINARY

        def load(self, data: Any) -> Any:
            # The first byte is the format version.
            return read_json(bytes(data)[1:])

    return JsonbLoader


def _type_name(name: str) -> str:
    return f"pg_catalog.{name}" if name in _NAMED_TYPES else name


def _spell(name: str, kind: str, value: Any) -> str | bytes | None:
    """Return an argument as PostgreSQL reads it; raises InvalidArgument if it cannot be sent."""
    checked = check_argument(name, kind, value)
    match checked:
        case None | bytes():
            return checked
        case str():
            _refuse_nul(name, kind, checked)
            return checked
        case bool():
            return "true" if checked else "false"
        case datetime():
            return checked.isoformat()
        case list():
            return "{" + ",".join(map(str, checked)) + "}"
        case _:
            return repr(checked)


def _refuse_nul(name: str, kind: str, text: str) -> None:
    # Only a text with the substring needs the slower regular expression.
    is_escaped = kind == "json" and r"\u0000" in text and _ESCAPED_NUL.search(text)
    if "\0" in text or is_escaped:
        raise InvalidArgument(f"{name} must not contain NUL characters; send such a body as bytes")


def _in_utc(time: datetime) -> datetime:
    return time.astimezone(UTC)


READERS: Mapping[str, Reader] = {"timestamp": _in_utc}
"""Readers by contract type; other types need no conversion."""
