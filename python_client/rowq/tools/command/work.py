"""work: a worker that runs a command, or a Python function, for every message."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rowq.errors import WorkerFailed
from rowq.tools.command.execute import CannotRun, Command, parse
from rowq.tools.command.programs import Programs
from rowq.tools.command.striped import open_striped
from rowq.tools.console.database import (
    only_url,
    open_queue,
    require_queue,
    server_of,
    servers_in,
)
from rowq.tools.console.errors import CommandFailed, one_line
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AsJson, LeaseSeconds, QueueName, Stripes, Urls, WorkerName
from rowq.tools.console.output import print_json
from rowq.tools.console.streams import say
from rowq.tools.terminal import log_to_stderr, printable
from rowq.worker import Worker, WorkerStats
from rowq.worker.context import StopSignals, default_name
from rowq.worker.handlers import find_handler
from rowq.worker.threads import OnProgress


def summary(stats: WorkerStats) -> str:
    """Return a worker's counts in words."""
    return (
        f"{stats.processed} completed, {stats.retried} to be retried, {stats.failed} failed,"
        f" {stats.released} given back, {stats.stale} lost to others"
        + (f", {stats.cancelled} cancelled" if stats.cancelled else "")
    )


def noting_stop(on_progress: OnProgress | None) -> OnProgress:
    """Return a callback that also prints, at the first signal, how the worker stops."""
    noted = False

    def on_progress_or_stop(stats: WorkerStats) -> None:
        nonlocal noted
        if on_progress:
            on_progress(stats)
        number = StopSignals.entered.asked if StopSignals.entered else None
        if number and not noted:
            noted = True
            again = "Ctrl-C" if number == signal.SIGINT else number.name
            # The stream may be closed, or full.
            with suppress(OSError, ValueError, AttributeError):
                say(f"stopping after the running messages; {again} again to stop now", err=True)

    return on_progress_or_stop


@contextmanager
def progress_line(opening: str) -> Iterator[OnProgress]:
    """Print a line on standard error, and below it one that shows the counts it is given.

    While it is shown, what is written to `sys.stderr` goes above it.
    """
    console = Console(stderr=True, highlight=False)
    console.print(printable(opening), markup=False)
    line = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = line.add_task(summary(WorkerStats()), total=None)
    with line:
        yield lambda stats: line.update(task, description=summary(stats))


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Messages")(work)


def work(
    queue_name: QueueName,
    url: Urls,
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
                "Run for every message, without a shell unless there is --shell. The body is on its"
                " standard input, the message's facts are in ROWQ_MESSAGE_ID, ROWQ_ATTEMPT,"
                " ROWQ_HEADERS... and as JSON in the file ROWQ_MESSAGE_FILE."
                " Exit status 0 completes, 65 fails, anything else retries."
            ),
        ),
    ] = None,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Let sh -c run COMMAND, with its pipes and redirections."),
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Messages at a time: processes for a function, else commands."
        ),
    ] = 1,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=(
                "Most messages per claim. By default 1, and more while messages take less than a"
                " tenth of a second; with --concurrent 10."
            ),
            show_default=False,
        ),
    ] = None,
    lease_seconds: LeaseSeconds = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help=(
                "Most seconds for a message. Then its command is ended, its function gets an"
                " exception, and is ended with its process if that does not help."
            ),
        ),
    ] = None,
    worker_name: WorkerName = None,
    transactional: Annotated[
        bool,
        typer.Option(
            "--transactional", help="FUNCTION(message, connection) shares complete's transaction."
        ),
    ] = False,
    concurrent: Annotated[
        bool,
        typer.Option(
            "--concurrent", help="Let an async FUNCTION work on all messages of a claim together."
        ),
    ] = False,
    listen: Annotated[
        bool | None,
        typer.Option(
            "--listen/--no-listen",
            help=(
                "Be told of new messages while idle, which only PostgreSQL does. By default where"
                " that works and without --drain; with --listen an error says why it does not."
            ),
            show_default=False,
        ),
    ] = None,
    stripes: Stripes = None,
    first_stripe: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="With --stripes: the stripe to ask first, such as the number of this worker.",
        ),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="End when nothing is left.")] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Serve /metrics for Prometheus, /live and /ready there; needs rowq[metrics].",
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address for --metrics-port; 0.0.0.0 is all of this machine.")
    ] = "127.0.0.1",
    as_json: AsJson = False,
) -> None:
    """Work on messages until Ctrl-C or SIGTERM, or with --drain until nothing is left.

    The first signal lets running messages finish and gives the others back; a second one ends at
    once, programs of --exec too, and what was in hand comes back when its lease runs out.

    A command of --exec completes its message by exit status 0 and declares it dead by 65. Any other
    status, or a signal, means another attempt after the queue's backoff, until the attempts run
    out; the end of its standard error is kept as the reason. A message whose command is ended by a
    signal while the worker stops has spent no attempt.

    Exits with 0 when it was stopped or has drained, with 6 when it gave up: the command cannot run,
    a handler cannot be imported, the database refuses. A command cannot run when it cannot be
    started for ten seconds, or when the first three messages end with 126 or 127, or with an
    interpreter that cannot find its script. What was taken is given back then, its attempts not
    spent. After a second signal the exit status is 143 (SIGTERM) or 130 (Ctrl-C).
    """
    if (handler is None) == (command is None):
        raise typer.BadParameter("give either MODULE:FUNCTION or --exec COMMAND")
    if command is not None and (transactional or concurrent):
        option = "--transactional" if transactional else "--concurrent"
        raise typer.BadParameter(f"{option} is for a function, not for --exec")
    if command is None and shell:
        raise typer.BadParameter("--shell is for --exec")
    arguments = _arguments(command, shell) if command is not None else ()
    function = _function(handler, 2 if transactional else 1) if handler is not None else None
    servers = servers_in(url) if stripes is not None else only_url(url)
    if stripes is not None:
        _require_stripes(url, queue_name, stripes)
    else:
        with open_queue(only_url(url)) as queue:
            require_queue(queue, queue_name, "consumer")
    # Only a process of its own can be ended when its function hangs.
    in_processes = function is not None and (workers > 1 or timeout_seconds is not None)
    with ExitStack() as stack:
        on_progress = None
        if sys.stderr.isatty() and not as_json:
            name = worker_name or default_name()
            where = server_of(servers) if isinstance(servers, str) else ", ".join(servers)
            opening = f"working on {queue_name} as {name}, {where}; Ctrl-C ends"
            on_progress = stack.enter_context(progress_line(opening))
        log_to_stderr()
        worker = Worker(
            servers,
            queue_name,
            function or Command(arguments, stack.enter_context(Programs())),
            stripes=stripes,
            first_stripe=first_stripe,
            batch_size=batch_size,
            lease_seconds=lease_seconds,
            timeout_seconds=timeout_seconds,
            threads=1 if in_processes else workers,
            processes=workers if in_processes else 0,
            transactional=transactional,
            concurrent=concurrent,
            listen=listen,
            drain=drain,
            worker_name=worker_name,
            on_progress=noting_stop(on_progress),
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
        failure = _failure_of(worker)
    _print_stats(worker.stats, as_json)
    if failure is not None:
        raise failure


def _require_stripes(urls: list[str], queue_name: str, stripes: int) -> None:
    """Raise QueueNotFound unless all stripes are there, on the servers that answer."""
    with open_striped(urls, queue_name, stripes) as striped:
        striped.queue_stats(max_count=1)


def _failure_of(worker: Worker) -> CommandFailed | None:
    """Run the worker; return what made it give up, None when it did not."""
    try:
        worker.run()
    except WorkerFailed as error:
        text = one_line(error)
        if isinstance(error.__cause__, CannotRun) and not worker.stats.failed:
            text += "; nothing was declared dead"
        failure = CommandFailed(ExitCode.FAILED, text)
        failure.__cause__ = error
        return failure
    return None


def _arguments(line: str, by_shell: bool) -> tuple[str, ...]:
    try:
        return parse(line, by_shell=by_shell)
    except ValueError as error:
        raise typer.BadParameter(f"--exec: {error}") from None


def _function(name: str, arguments: int) -> str:
    """Return `name` once it is found, in the current directory too; raises WorkerFailed."""
    sys.path.insert(0, str(Path.cwd()))
    find_handler(name, arguments)
    return name


def _print_stats(stats: WorkerStats, as_json: bool) -> None:
    if as_json:
        print_json(stats)
    else:
        say(summary(stats))
