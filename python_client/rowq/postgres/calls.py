"""How a routine is called on PostgreSQL, and how its rows are read.

The text of a call is fixed per routine and names every parameter with its type, and values go as
text of unknown type: so psycopg prepares one statement per routine, whatever is null in a call.
"""

import re
from collections.abc import Mapping
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
    entry_of,
    given,
    inputs_of,
    read_rows,
    readers_of,
)
from rowq.engines.json_columns import read_json
from rowq.errors import InvalidArgument
from rowq.postgres.driver import load_driver

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
    contract = load_contract()
    entry = entry_of("postgres", routine)
    parameters = inputs_of("postgres", routine)
    marks = ", ".join(
        f"p_{name} => %s::{_type_name(contract.types[kind]['postgres'])}"
        for name, kind in parameters
    )
    columns = ", ".join(column.name for column in entry.columns)
    text = (
        f"call rowq.{routine}({marks})"
        if entry.kind == "procedure"
        else f"select {columns} from rowq.{routine}({marks})"  # noqa: S608 - from the contract
    )
    has_json = any(column.type == "json" for column in entry.columns)
    return Call(text, parameters, readers_of("postgres", routine, _READERS), has_json)


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


# The driver returns everything else as the contract wants it.
_READERS: Mapping[str, Reader] = {"timestamp": _in_utc}
