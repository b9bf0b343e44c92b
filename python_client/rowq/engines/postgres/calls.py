"""How a routine is called on PostgreSQL, and how its rows are read.

The text of a call is fixed per routine and names every parameter with its type, and values go as
text of unknown type: so psycopg prepares one statement per routine, whatever is null in a call.
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
    given,
    inputs_of,
    read_json,
    read_rows,
    readers_of,
)
from rowq.engines.postgres.driver import load_driver
from rowq.errors import InvalidArgument

# A session's search path decides about these names; the other types are words of the grammar.
_NAMED_TYPES = {"text", "bytea", "jsonb"}
_JSONB = 3802
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class Call:
    """How to call one routine, and how to read what it returns.

    text: the call with a mark for every parameter. parameters: name and contract type of each, in
    order. readers: what makes the contract's Python values of some columns. has_json: whether a
    column is JSON, which the cursor has to read.
    """

    text: str
    parameters: Inputs
    readers: Readers
    has_json: bool

    def values(self, arguments: Mapping[str, Any]) -> list[str | bytes | None]:
        """Return the arguments as they are sent; raises InvalidArgument."""
        return [_spell(*one) for one in given("postgres", self.parameters, arguments)]

    def use_reader(self, cursor: Any) -> None:
        """Let a cursor read JSON as rowq does, whatever the connection's owner has set."""
        if self.has_json:
            cursor.adapters.register_loader(_JSONB, _jsonb_loader())

    def rows(self, rows: list[Row]) -> list[Row]:
        """Return rows of the driver in the contract's Python types."""
        return read_rows(rows, self.readers)


@cache
def call_of(routine: str) -> Call:
    """Return how to call a routine of the contract, such as dequeue_fast."""
    entry = entry_of("postgres", routine)
    parameters = inputs_of("postgres", routine)
    text = text_of(routine, lambda _place, _name, type_name: f"%s::{type_name}")
    has_json = any(column.type == "json" for column in entry.columns)
    return Call(text, parameters, readers_of("postgres", routine, READERS), has_json)


def text_of(
    routine: str,
    mark: Callable[[int, str, str], str],
    column: Callable[[str, str], str] = lambda name, _kind: name,
) -> str:
    """Return the call of a routine.

    Args:
        routine: its name in the contract.
        mark: returns what stands for a parameter, by its place from 1, name and type's name.
        column: returns what is selected for a column, by its name and contract type.
    """
    types = load_contract().types
    entry = entry_of("postgres", routine)
    parameters = ", ".join(
        f"p_{name} => {mark(place, name, _type_name(types[kind]['postgres']))}"
        for place, (name, kind) in enumerate(inputs_of("postgres", routine), start=1)
    )
    if entry.kind == "procedure":
        return f"call rowq.{routine}({parameters})"
    columns = ", ".join(column(one.name, one.type) for one in entry.columns)
    return f"select {columns} from rowq.{routine}({parameters})"  # noqa: S608 - from the contract


def values_of(routine: str, arguments: Mapping[str, Any]) -> dict[str, str | bytes | None]:
    """Return the arguments of a call as texts, and bytes; raises InvalidArgument.

    The drivers that take these refuse half a character by errors of their own, so it is refused
    here.
    """
    values: dict[str, str | bytes | None] = {}
    for name, kind, value in given("postgres", inputs_of("postgres", routine), arguments):
        values[name] = spelled = _spell(name, kind, value)
        if isinstance(spelled, str):
            encoded(name, spelled)
    return values


def named_call(
    routine: str, arguments: Mapping[str, Any]
) -> tuple[str, dict[str, str | bytes | None]]:
    """Return a call with marks such as :queue_name, and the values; raises InvalidArgument."""
    return _named(routine), values_of(routine, arguments)


@cache
def _named(routine: str) -> str:
    return text_of(routine, lambda _place, name, type_name: f"cast(:{name} as {type_name})")


@cache
def _jsonb_loader() -> type[Any]:
    class JsonbLoader(load_driver().adapt.Loader):  # type: ignore[misc]
        format = load_driver().pq.Format.BINARY

        def load(self, data: Any) -> Any:
            # The first byte is the version of the format.
            return read_json(bytes(data)[1:])

    return JsonbLoader


def _type_name(name: str) -> str:
    return f"pg_catalog.{name}" if name in _NAMED_TYPES else name


def _spell(name: str, kind: str, value: Any) -> str | bytes | None:
    """Return an argument as PostgreSQL reads it; raises InvalidArgument when it cannot be sent."""
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
    # The plain search costs next to nothing, and nearly every text ends there.
    is_escaped = kind == "json" and r"\u0000" in text and _ESCAPED_NUL.search(text)
    if "\0" in text or is_escaped:
        raise InvalidArgument(f"{name} holds a NUL character; send such a body as bytes")


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


READERS: Mapping[str, Reader] = {"timestamp": _in_utc}
"""By contract type; the drivers return everything else as the contract wants it."""
