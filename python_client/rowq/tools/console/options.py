"""Arguments and options that several commands share."""

import os
from datetime import datetime
from typing import Annotated, Any

import typer

from rowq.engines import EXAMPLE, engine_for_url, engines
from rowq.errors import EngineUnknown
from rowq.tools.console.database import is_named, remember_url, remember_urls

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
    typer.Option(metavar="N", help="The queue is a striped one, with N parts on each server."),
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

# These are options of a message to be enqueued.
Priority = Annotated[int, typer.Option(help="0 to 9; 0 is delivered first.")]
DelaySeconds = Annotated[
    float | None, typer.Option("--delay", metavar="SECONDS", help="Deliver no sooner.")
]
RunAt = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Deliver no sooner than this ISO 8601 date and time."),
]
MessageType = Annotated[str | None, typer.Option("--type", help="Free label for the consumer.")]
Headers = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="A header; may be repeated.")
]
MessageMaxAttempts = Annotated[int | None, typer.Option(help="Leases before the message is dead.")]


def message_options(
    priority: int,
    delay_seconds: float | None,
    run_at: str | None,
    message_type: str | None,
    headers: list[str] | None,
    max_attempts: int | None,
) -> dict[str, Any]:
    """Return what Queue.enqueue and NewMessage both take, as keyword arguments."""
    return {
        "priority": priority,
        "delay_seconds": delay_seconds,
        "run_at": moment(run_at),
        "message_type": message_type,
        "headers": header_pairs(headers),
        "max_attempts": max_attempts,
    }


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
