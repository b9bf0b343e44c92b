"""How results are printed: tables for people, JSON lines for programs."""

import base64
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rowq.messages import Enqueued, UnreadableHeaders
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.streams import say
from rowq.tools.terminal import cause_of, printable, printable_json
from rowq.worker.stripes import Stripe, StripedEnqueued

LEVEL_STYLES = {"critical": "bold red", "warning": "yellow"}
"""How a finding of health is shown, by its status."""
_WIDE = 10_000
_LONGEST_CELL = 300
_ERRORS = frozenset({"last_error", "error"})


def console() -> Console:
    """Return the console of standard output; without a terminal nothing is wrapped or cut."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, highlight=False, width=None if terminal else _WIDE)


def print_json(value: Any) -> None:
    """Print a result or a dictionary as one line of JSON."""
    say(printable_json(record(value), default=_spell))


def record(value: Any) -> Any:
    """Return a dataclass as a dictionary of its fields; anything else as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _readable(getattr(value, field.name)) for field in fields(value)}
    return value


def print_rows(
    rows: Sequence[Any],
    as_json: bool,
    *,
    nothing: str,
    columns: Sequence[str] | None = None,
    style: Callable[[Mapping[str, Any]], str | None] | None = None,
) -> None:
    """Print results as JSON lines, or as a table.

    rows     dataclasses or dictionaries of one kind
    nothing  what a person is told when there are none
    columns  what the table shows; all fields by default
    style    the rich style of a table's row
    """
    if as_json:
        for row in rows:
            print_json(row)
    elif not rows:
        say(nothing)
    else:
        console().print(table([record(row) for row in rows], columns, style))


def table(
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    style: Callable[[Mapping[str, Any]], str | None] | None = None,
) -> Table:
    """Return dictionaries as a table for people."""
    names = columns or list(records[0])
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_number = all(isinstance(row[name], int | float | None) for row in records)
        # On a narrow terminal text goes on in the next line; half a number would be another one.
        made.add_column(
            Text(name.replace("_", " ")),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in records:
        cells = [cell(_shown(name, row[name])) for name in names]
        made.add_row(*cells, style=style(row) if style else None)
    return made


def _shown(name: str, value: Any) -> Any:
    """Return what a table shows of a value: of an error the line with its cause."""
    return cause_of(value) if name in _ERRORS and value is not None else value


def print_enqueued(enqueued: Enqueued, as_json: bool) -> None:
    """Print what became of a message that was handed over."""
    if as_json:
        print_json(enqueued)
    else:
        say(said_of(enqueued))


def said_of(enqueued: Enqueued) -> str:
    """Return in words what became of a message that was handed over."""
    said = {"enqueued": "enqueued message", "duplicate": "duplicate of message"}
    return f"{said[enqueued.outcome]} {enqueued.message_id}"


def print_placed(placed: StripedEnqueued, as_json: bool) -> None:
    """Print what became of a message of a striped queue, and where it is."""
    sent = Enqueued(placed.message_id, placed.outcome)
    if as_json:
        print_json(place_of(placed.stripe) | record(sent))
    else:
        say(f"{said_of(sent)} in {placed.stripe}")


def place_of(stripe: Stripe) -> dict[str, Any]:
    """Return where a stripe is: its server, where there are several, and its queue."""
    server = {} if stripe.server is None else {"server": stripe.server}
    return server | {"queue_name": stripe.queue_name}


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print a name and a value per line, for people."""
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name.replace('_', ' '):<{width}}  {cell(value, _WIDE).plain}")


def cell(value: Any, longest: int = _LONGEST_CELL) -> Text:
    """Return a value as one cell of a table, in which no character commands the terminal."""
    match value:
        case None:
            return Text("-")
        case bool():
            return Text("yes" if value else "no")
        case float():
            return Text(f"{value:,.3f}".rstrip("0").rstrip("."))
        case datetime():
            return Text(value.isoformat(sep=" ", timespec="milliseconds"))
        case bytes():
            return Text(f"{len(value):,} bytes")
        case dict() | list() | tuple():
            shown = json.dumps(value, ensure_ascii=False, default=_spell)
        case _:
            shown = str(value)
    visible = printable(shown)
    return Text(visible if len(visible) <= longest else visible[: longest - 1] + "…")


def finish(outcomes: Iterable[Any], as_json: bool, *, good: set[str]) -> None:
    """Print what was done with each message; exit with INCOMPLETE unless all outcomes are good."""
    results = list(outcomes)
    print_rows(results, as_json, nothing="no messages")
    if any(result.outcome not in good for result in results):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _readable(value: Any) -> Any:
    """Return a field's value, of headers that cannot be read their text."""
    return value.text if isinstance(value, UnreadableHeaders) else value


def _spell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return record(value)
