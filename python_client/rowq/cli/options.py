"""Arguments and options that several commands share."""

from datetime import datetime
from typing import Annotated

import typer

from rowq.cli.database import remember_url
from rowq.engines import engines

_SCHEMES = " or ".join(f"{engine.schemes[0]}://..." for engine in engines())

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="ROWQ_URL",
        help=f"The database: {_SCHEMES}.",
        show_default=False,
        callback=remember_url,
    ),
]
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
    for pair in pairs or ():
        if not pair.partition("=")[0] or "=" not in pair:
            raise typer.BadParameter(f"a header is written KEY=VALUE, got {pair!r}")
    return {key: value for key, _, value in (one.partition("=") for one in pairs or ())} or None
