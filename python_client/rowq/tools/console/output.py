"""Output: tables for people, JSON lines for programs."""

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
"""The style of a health check, by its status."""
_WIDE = 10_000
_LONGEST_CELL = 300
_ERRORS = frozenset({"last_error", "error"})


def console() -> Console:
    """Return the console of standard output; without a terminal it neither wraps nor cuts."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, highlight=False, width=None if terminal else _WIDE)


def print_json(value: Any) -> None:
    """Print a result or a dictionary as one line of JSON."""
    say(printable_json(record(value), default=_to_json))


def record(value: Any) -> Any:
    """Return a dataclass as a dictionary of its fields; anything else unchanged."""
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
    nothing  text if there are none
    columns  columns of the table; default: all fields
    style    returns the rich style of a row
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
    """Return dictionaries as a table."""
    names = columns or list(records[0])
    result = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_number = all(isinstance(row[name], int | float | None) for row in records)
        # On a narrow terminal text wraps, but half of a number would be another number.
        result.add_column(
            Text(name.replace("_", " ")),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in records:
        cells = [cell(_shown(name, row[name])) for name in names]
        result.add_row(*cells, style=style(row) if style else None)
    return result


def _shown(name: str, value: Any) -> Any:
    """Return a value for a table: of an error only the line with its cause."""
    return cause_of(value) if name in _ERRORS and value is not None else value


def print_enqueued(enqueued: Enqueued, as_json: bool) -> None:
    """Print the outcome of an enqueue."""
    if as_json:
        print_json(enqueued)
    else:
        say(_outcome_of(enqueued))


def _outcome_of(enqueued: Enqueued) -> str:
    texts = {"enqueued": "enqueued message", "duplicate": "duplicate of message"}
    return f"{texts[enqueued.outcome]} {enqueued.message_id}"


def print_striped(striped: StripedEnqueued, as_json: bool) -> None:
    """Print the outcome of an enqueue in a striped queue, and the stripe."""
    enqueued = Enqueued(striped.message_id, striped.outcome)
    if as_json:
        print_json(location_of(striped.stripe) | record(enqueued))
    else:
        say(f"{_outcome_of(enqueued)} in {striped.stripe}")


def location_of(stripe: Stripe) -> dict[str, Any]:
    """Return the queue of a stripe, and its server if there are several."""
    server = {} if stripe.server is None else {"server": stripe.server}
    return server | {"queue_name": stripe.queue_name}


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print a name and a value per line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name.replace('_', ' '):<{width}}  {cell(value, _WIDE).plain}")


def cell(value: Any, longest: int = _LONGEST_CELL) -> Text:
    """Return a value as a cell of a table, without terminal control characters."""
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
            shown = json.dumps(value, ensure_ascii=False, default=_to_json)
        case _:
            shown = str(value)
    visible = printable(shown)
    return Text(visible if len(visible) <= longest else visible[: longest - 1] + "…")


def finish(outcomes: Iterable[Any], as_json: bool, *, good: set[str]) -> None:
    """Print the outcome of each message; exit with INCOMPLETE unless all outcomes are good."""
    results = list(outcomes)
    print_rows(results, as_json, nothing="no messages")
    if any(result.outcome not in good for result in results):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _readable(value: Any) -> Any:
    """Return a field's value; of unreadable headers their text."""
    return value.text if isinstance(value, UnreadableHeaders) else value


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return record(value)
