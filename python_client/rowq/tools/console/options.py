"""Arguments and options shared by several commands."""

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeVar

import typer

from rowq.contract import load_contract
from rowq.engines import EXAMPLE, engine_for_url, engines
from rowq.errors import EngineUnknown
from rowq.options import keywords
from rowq.tools.console.database import is_named, remember_url, remember_urls

_F = TypeVar("_F", bound=Callable[..., Any])

_SCHEMES = " or ".join(f"{engine.schemes[0]}://..." for engine in engines())


def _url_of_environment() -> str:
    """Return DATABASE_URL, which other programs also use; raise typer.BadParameter."""
    url = os.environ.get("DATABASE_URL", "")
    try:
        engine_for_url(url)
    except EngineUnknown:
        raise typer.BadParameter(
            f"no database URL; set ROWQ_URL={EXAMPLE} or use --url", param_hint="'--url'"
        ) from None
    return url


Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="ROWQ_URL",
        help=f"Database URL: {_SCHEMES}. Default: DATABASE_URL, if it is one of these.",
        show_default=False,
        default_factory=_url_of_environment,
        callback=remember_url,
    ),
]


def _urls_of_environment() -> list[str]:
    """Return the named URLs or the only URL in ROWQ_URL; else DATABASE_URL."""
    text = os.environ.get("ROWQ_URL", "")
    words = text.split()
    if words and is_named(words[0]):
        return words
    return [text or _url_of_environment()]


Urls = Annotated[
    list[str],
    typer.Option(
        "--url",
        help=(
            f"Database URL: {_SCHEMES}. Several (striped queues, web page): NAME=URL each."
            " Default: ROWQ_URL, or DATABASE_URL if it is one of these."
        ),
        show_default=False,
        default_factory=_urls_of_environment,
        callback=remember_urls,
    ),
]
Stripes = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of stripes per server, for a striped queue."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="No confirmation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Output as JSON, one object per line.")]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Queue name.")]
AnyQueue = Annotated[
    str | None,
    typer.Argument(metavar="QUEUE", help="Queue name. Default: all queues."),
]
ClaimId = Annotated[int, typer.Argument(metavar="CLAIM_ID", help="The claim_id from dequeue.")]
HeldIds = Annotated[
    list[int] | None,
    typer.Argument(metavar="ID", help="Message ids. Default: all messages of the claim."),
]
BatchSize = Annotated[int, typer.Option(help="Maximum number of messages.")]
LeaseSeconds = Annotated[
    int | None, typer.Option(help="Length of the lease in seconds. Default: the queue's.")
]
WorkerName = Annotated[str | None, typer.Option(help="Worker name shown in rowq claims.")]
ErrorText = Annotated[str | None, typer.Option("--error", help="Reason, shown as last_error.")]

MessageType = Annotated[
    str | None, typer.Option("--type", help="Message type, passed to the consumer.")
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="KEY=VALUE", help="Header. Repeatable."),
]
MessageMaxAttempts = Annotated[
    int | None, typer.Option(help="Attempts before the message is dead; 0: no limit.")
]

_NAMED: Mapping[str, Any] = {
    "delay_seconds": Annotated[
        float | None, typer.Option("--delay", metavar="SECONDS", help="Delay of the delivery.")
    ],
    "run_at": Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Earliest delivery, as an ISO 8601 time."),
    ],
    "message_type": MessageType,
    "headers": Headers,
    "group_key": Annotated[
        str | None,
        typer.Option("--group", help="Group key; messages of a group are delivered in order."),
    ],
    "predecessor_ids": Annotated[
        list[int] | None,
        typer.Option("--after", metavar="ID", help="Message that must end first. Repeatable."),
    ],
    "on_predecessor_dead": Annotated[
        str | None,
        typer.Option(help="If a message of --after dies: hold, continue or fail. Default: hold."),
    ],
    "expire_seconds": Annotated[
        float | None,
        typer.Option(
            "--expire", metavar="SECONDS", help="Time after which an unfinished message expires."
        ),
    ],
}
"""Options of a message that differ from the contract's parameters."""

_LAST = {"stripes", "as_json"}
"""Options that the help lists last."""


def has_options(
    kind: type, *, without: Collection[str] = (), named: Mapping[str, Any] = {}
) -> Callable[[_F], _F]:
    """Replace a command's `**options` by an option for each key of `kind`, such as MessageOptions.

    Name and help come from the contract, unless `named` or _NAMED overrides them.
    """

    def add(command: _F) -> _F:
        overrides = {**_NAMED, **named}
        *own, _ = inspect.signature(command).parameters.values()
        made = [
            one.replace(annotation=overrides.get(one.name) or _option(one))
            for one in keywords(kind)
            if one.name not in without
        ]
        shown = sorted([*own, *made], key=lambda one: one.name in _LAST)
        vars(command)["__signature__"] = inspect.Signature(
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown]
        )
        return command

    return add


def _option(parameter: inspect.Parameter) -> Any:
    return Annotated[parameter.annotation, typer.Option(help=_meanings()[parameter.name])]


@cache
def _meanings() -> dict[str, str]:
    routines = load_contract().routines.values()
    return {one.name: one.meaning for routine in routines for one in routine.parameters}


def message_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a message as keyword arguments of Queue.enqueue and NewMessage."""
    options = dict(values)
    options["run_at"] = parse_time(options["run_at"])
    options["headers"] = header_pairs(options["headers"])
    return options


def parse_time(text: str | None) -> datetime | None:
    """Parse an ISO 8601 date and time; without an offset it is local time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"expected a time such as 2030-01-31T18:00 or 2030-01-31T18:00+01:00, got {text!r}"
        ) from None


def header_pairs(pairs: list[str] | None) -> dict[str, str] | None:
    """Return KEY=VALUE texts as a dictionary; None if there are none."""
    headers = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"a header must be KEY=VALUE, got {pair!r}")
        headers[key] = value
    return headers or None
