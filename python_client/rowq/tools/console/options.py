"""Arguments and options that several commands share."""

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
    """Return DATABASE_URL, which other programs use, too; raises typer.BadParameter."""
    url = os.environ.get("DATABASE_URL", "")
    try:
        engine_for_url(url)
    except EngineUnknown:
        raise typer.BadParameter(
            f"no database is named: export ROWQ_URL={EXAMPLE}, or use --url", param_hint="'--url'"
        ) from None
    return url


Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="ROWQ_URL",
        help=f"The database: {_SCHEMES}; DATABASE_URL when it is one of these.",
        show_default=False,
        default_factory=_url_of_environment,
        callback=remember_url,
    ),
]


def _urls_of_environment() -> list[str]:
    """Return the URLs of ROWQ_URL: several where they have names, else one; or DATABASE_URL."""
    given = os.environ.get("ROWQ_URL", "")
    words = given.split()
    if words and is_named(words[0]):
        return words
    return [given or _url_of_environment()]


Urls = Annotated[
    list[str],
    typer.Option(
        "--url",
        help=(
            f"The database: {_SCHEMES}; else ROWQ_URL, or DATABASE_URL when it is one of these."
            " Several, as a striped queue or the page has, are NAME=URL each."
        ),
        show_default=False,
        default_factory=_urls_of_environment,
        callback=remember_urls,
    ),
]
Stripes = Annotated[
    int | None,
    typer.Option(metavar="N", help="The queue is a striped one, with N stripes on each server."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
AnyQueue = Annotated[
    str | None,
    typer.Argument(metavar="QUEUE", help="Name of the queue; every queue when left out."),
]
ClaimId = Annotated[
    int, typer.Argument(metavar="CLAIM_ID", help="The claim_id that dequeue printed.")
]
HeldIds = Annotated[
    list[int] | None,
    typer.Argument(metavar="ID", help="Messages; all that the claim still holds by default."),
]
BatchSize = Annotated[int, typer.Option(help="Most messages to take at a time.")]
LeaseSeconds = Annotated[
    int | None, typer.Option(help="Length of the lease; the queue's by default.")
]
WorkerName = Annotated[str | None, typer.Option(help="Who holds the messages, for people to read.")]
ErrorText = Annotated[str | None, typer.Option("--error", help="What went wrong.")]

MessageType = Annotated[str | None, typer.Option("--type", help="Free label for the consumer.")]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="KEY=VALUE", help="A header; may be repeated."),
]
MessageMaxAttempts = Annotated[int | None, typer.Option(help="Leases before the message is dead.")]

_NAMED: Mapping[str, Any] = {
    "delay_seconds": Annotated[
        float | None, typer.Option("--delay", metavar="SECONDS", help="Deliver no sooner.")
    ],
    "run_at": Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Deliver no sooner than this ISO 8601 date and time."),
    ],
    "message_type": MessageType,
    "headers": Headers,
    "group_key": Annotated[
        str | None,
        typer.Option("--group", help="First in, first out, one at a time among those of this key."),
    ],
    "predecessor_ids": Annotated[
        list[int] | None,
        typer.Option(
            "--after", metavar="ID", help="Deliver only when this message has ended; repeatable."
        ),
    ],
    "on_predecessor_dead": Annotated[
        str | None,
        typer.Option(help="If one of --after dies: hold (unless given), continue or fail."),
    ],
    "expire_seconds": Annotated[
        float | None,
        typer.Option(
            "--expire", metavar="SECONDS", help="Withdraw it if it has not ended after this time."
        ),
    ],
}
"""Options of a message that are written in another way than the contract's parameters."""

_LAST = {"stripes", "as_json"}
"""Options that help lists behind those of the contract."""


def has_options(
    kind: type, *, without: Collection[str] = (), named: Mapping[str, Any] = {}
) -> Callable[[_F], _F]:
    """Give a command, for its `**options`, an option for each of a kind, such as MessageOptions.

    An option is named after the contract's parameter, and its help is what the contract says; but
    for those that `named`, or _NAMED, spells in another way.
    """

    def give(command: _F) -> _F:
        spelled = {**_NAMED, **named}
        *own, _ = inspect.signature(command).parameters.values()
        made = [
            one.replace(annotation=spelled.get(one.name) or _option(one))
            for one in keywords(kind)
            if one.name not in without
        ]
        shown = sorted([*own, *made], key=lambda one: one.name in _LAST)
        vars(command)["__signature__"] = inspect.Signature(
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown]
        )
        return command

    return give


def _option(parameter: inspect.Parameter) -> Any:
    return Annotated[parameter.annotation, typer.Option(help=_meanings()[parameter.name])]


@cache
def _meanings() -> dict[str, str]:
    routines = load_contract().routines.values()
    return {one.name: one.meaning for routine in routines for one in routine.parameters}


def message_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a message as keyword arguments of Queue.enqueue and NewMessage."""
    options = dict(given)
    options["run_at"] = moment(options["run_at"])
    options["headers"] = header_pairs(options["headers"])
    return options


def moment(text: str | None) -> datetime | None:
    """Return an ISO 8601 date and time; without an offset it is this machine's local time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no date and time such as 2030-01-31T18:00 or 2030-01-31T18:00+01:00"
        ) from None


def header_pairs(pairs: list[str] | None) -> dict[str, str] | None:
    """Return KEY=VALUE texts as a dictionary, None when there are none."""
    headers = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"a header is written KEY=VALUE, got {pair!r}")
        headers[key] = value
    return headers or None
