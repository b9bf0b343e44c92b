"""work: a worker that runs a command, or a Python function, for every message."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from rowq.cli.database import open_queue
from rowq.cli.execute import Command
from rowq.cli.options import AsJson, LeaseSeconds, QueueName, Url, WorkerName
from rowq.cli.output import print_json
from rowq.worker import Worker, WorkerStats
from rowq.worker.handlers import find_handler


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Messages")(work)


def work(
    queue_name: QueueName,
    url: Url,
    handler: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:FUNCTION", help="Called with every message; see rowq.Worker."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help=(
                "Run for every message, without a shell. The body is on its standard input, the"
                " message's facts are in ROWQ_MESSAGE_ID, ROWQ_ATTEMPT, ROWQ_HEADERS... Exit"
                " status 0 completes, 75 retries later, anything else fails."
            ),
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Messages at a time: processes for a function, else commands."
        ),
    ] = 1,
    batch_size: Annotated[int, typer.Option(help="Most messages per claim.")] = 10,
    lease_seconds: LeaseSeconds = None,
    worker_name: WorkerName = None,
    transactional: Annotated[
        bool,
        typer.Option(
            "--transactional", help="FUNCTION(message, connection) shares complete's transaction."
        ),
    ] = False,
    listen: Annotated[
        bool,
        typer.Option("--listen", help="Be told of new messages while idle; PostgreSQL only."),
    ] = False,
    drain: Annotated[bool, typer.Option("--drain", help="End when nothing is left.")] = False,
    as_json: AsJson = False,
) -> None:
    """Work on messages until Ctrl-C or SIGTERM, or with --drain until nothing is left.

    The first signal lets running messages finish and gives the others back; a second one ends at
    once, and what was in hand comes back when its lease runs out.
    """
    if (handler is None) == (command is None):
        raise typer.BadParameter("give either MODULE:FUNCTION or --exec COMMAND")
    if command is not None and transactional:
        raise typer.BadParameter("--transactional is for a function, not for --exec")
    found = _command(queue_name, command) if command is not None else _function(handler or "")
    with open_queue(url) as queue:
        queue.peek(queue_name)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    in_processes = handler is not None and workers > 1
    worker = Worker(
        url,
        queue_name,
        found,
        batch_size=batch_size,
        lease_seconds=lease_seconds,
        threads=1 if in_processes else workers,
        processes=workers if in_processes else 0,
        transactional=transactional,
        listen=listen,
        drain=drain,
        worker_name=worker_name,
    )
    _tell(worker.run(), as_json)


def _command(queue_name: str, line: str) -> Command:
    try:
        return Command.parse(queue_name, line)
    except ValueError as error:
        raise typer.BadParameter(f"--exec: {error}") from None


def _function(name: str) -> str:
    """Return `name` when a worker will find it, in the current directory too."""
    sys.path.insert(0, str(Path.cwd()))
    find_handler(name)
    return name


def _tell(stats: WorkerStats, as_json: bool) -> None:
    if as_json:
        print_json(stats)
    else:
        typer.echo(
            f"{stats.processed} completed, {stats.retried} to be retried, {stats.failed} failed,"
            f" {stats.released} given back, {stats.stale} lost to others"
        )
