"""The command work."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rowq.errors import InvalidArgument, WorkerFailed
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
from rowq.worker.context import QueueNames, StopSignals, default_name, queues_of
from rowq.worker.handlers import find_handler
from rowq.worker.threads import OnProgress


def summary(stats: WorkerStats) -> str:
    """Return a worker's counts in words."""
    return (
        f"{stats.processed} completed, {stats.retried} retried, {stats.failed} failed,"
        f" {stats.released} released, {stats.stale} stale"
        + (f", {stats.snoozed} snoozed" if stats.snoozed else "")
        + (f", {stats.cancelled} cancelled" if stats.cancelled else "")
    )


def announcing_stop(on_progress: OnProgress | None) -> OnProgress:
    """Return a callback that also prints, at the first signal, that the worker stops."""
    announced = False

    def on_progress_or_stop(stats: WorkerStats) -> None:
        nonlocal announced
        if on_progress:
            on_progress(stats)
        number = StopSignals.entered.asked if StopSignals.entered else None
        if number and not announced:
            announced = True
            again = "Ctrl-C" if number == signal.SIGINT else number.name
            # The stream may be closed, or full.
            with suppress(OSError, ValueError, AttributeError):
                say(f"finishing the running messages; {again} again to stop now", err=True)

    return on_progress_or_stop


@contextmanager
def progress_line(opening: str) -> Iterator[OnProgress]:
    """Print a line on standard error, and a line of counts below everything else written there."""
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
            metavar="MODULE:FUNCTION", help="Python function to call with each message."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help=(
                "Command to run for each message, with the body on standard input. ROWQ_MESSAGE_ID,"
                " ROWQ_ATTEMPT, ROWQ_HEADERS... hold the message's attributes, the file"
                " ROWQ_MESSAGE_FILE all of them as JSON. Exit status 0 completes, 65 fails, any"
                " other retries."
            ),
        ),
    ] = None,
    snooze: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=315360000,
            metavar="SECONDS",
            help="With --exec: exit status 75 delays the message without counting the attempt.",
        ),
    ] = None,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Run COMMAND by sh -c, with pipes and redirections."),
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Messages to process in parallel: processes for a function, commands for --exec.",
        ),
    ] = 1,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=(
                "Maximum number of messages per claim. Default: 1, more while a message takes less"
                " than 0.1 s; 10 with --concurrent."
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
                "Maximum seconds for a message. Then its command is ended; its function gets an"
                " exception, and if that does not help, its process is ended."
            ),
        ),
    ] = None,
    worker_name: WorkerName = None,
    transactional: Annotated[
        bool,
        typer.Option(
            "--transactional", help="Call FUNCTION(message, connection) in complete's transaction."
        ),
    ] = False,
    concurrent: Annotated[
        bool,
        typer.Option(
            "--concurrent", help="Process all messages of a claim at once, by an async FUNCTION."
        ),
    ] = False,
    listen: Annotated[
        bool | None,
        typer.Option(
            "--listen/--no-listen",
            help=(
                "Use LISTEN instead of polling while idle (PostgreSQL). Default: if possible, and"
                " not with --drain. With --listen it is an error if not possible."
            ),
            show_default=False,
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE",
            help="Another queue; repeatable. Each claim comes from the first that has a message.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="N,N...",
            help="With --also: weighted turns of the queues, QUEUE first, instead of their order.",
        ),
    ] = None,
    stripes: Stripes = None,
    first_stripe: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="With --stripes: the stripe to poll first, such as this worker's number.",
        ),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Exit when no message is ready, due or leased.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port for /metrics (Prometheus), /live and /ready; needs rowq[metrics].",
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="Address for --metrics-port; 0.0.0.0 is all addresses.")
    ] = "127.0.0.1",
    as_json: AsJson = False,
) -> None:
    """Process messages by a command or a Python function.

    Runs until Ctrl-C or SIGTERM, or with --drain until no message is ready, due or leased. The
    first signal lets running messages finish and releases the others. A second signal ends
    everything at once, programs of --exec included; their messages return when the lease expires.

    A command of --exec completes its message with exit status 0 and makes it dead with 65. With
    --snooze, 75 delays it without counting the attempt. Any other status or a signal retries it
    after the queue's backoff, with the end of standard error as the reason. If a signal ends the
    command while the worker stops, the attempt is not counted.

    Exit status 0: stopped or drained. 6: cannot continue, because the command cannot run, the
    handler cannot be imported, or the database refuses. 143 (SIGTERM) or 130 (Ctrl-C): after a
    second signal. A command cannot run if it does not start within 10 seconds, or if the first 3
    messages end with 126 or 127, or with an interpreter that does not find its script. Then the
    messages are released without counting the attempt.
    """
    if (handler is None) == (command is None):
        raise typer.BadParameter("exactly one of MODULE:FUNCTION and --exec is required")
    if command is not None and (transactional or concurrent):
        option = "--transactional" if transactional else "--concurrent"
        raise typer.BadParameter(f"{option} requires MODULE:FUNCTION")
    if command is None and (shell or snooze is not None):
        raise typer.BadParameter(f"{'--shell' if shell else '--snooze'} requires --exec")
    names = [queue_name, *(also or [])]
    queues = _queues(names, weights, stripes)
    arguments = _arguments(command, shell) if command is not None else ()
    function = _function(handler, 2 if transactional else 1) if handler is not None else None
    servers = servers_in(url) if stripes is not None else only_url(url)
    if stripes is not None:
        _require_stripes(url, queue_name, stripes)
    else:
        with open_queue(only_url(url)) as queue:
            for one in names:
                require_queue(queue, one, "consumer")
    # A function that hangs can be ended only with its process.
    in_processes = function is not None and (workers > 1 or timeout_seconds is not None)
    with ExitStack() as stack:
        on_progress = None
        if sys.stderr.isatty() and not as_json:
            name = worker_name or default_name()
            where = server_of(servers) if isinstance(servers, str) else ", ".join(servers)
            opening = f"processing {', '.join(names)} as {name}, {where}; Ctrl-C to stop"
            on_progress = stack.enter_context(progress_line(opening))
        log_to_stderr()
        worker = Worker(
            servers,
            queues,
            function or Command(arguments, stack.enter_context(Programs()), snooze),
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
            on_progress=announcing_stop(on_progress),
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
        failure = _failure_of(worker)
    _print_stats(worker.stats, as_json)
    if failure is not None:
        raise failure


def _queues(names: list[str], weights: str | None, stripes: int | None) -> QueueNames:
    """Return the queues of a worker."""
    if len(names) > 1 and stripes is not None:
        raise typer.BadParameter("--also and --stripes are mutually exclusive")
    try:
        return queues_of(names, weights)
    except InvalidArgument as error:
        raise typer.BadParameter(str(error)) from None


def _require_stripes(urls: list[str], queue_name: str, stripes: int) -> None:
    """Raise QueueNotFound unless all stripes exist on the reachable servers."""
    with open_striped(urls, queue_name, stripes) as striped:
        striped.queue_stats(max_count=1)


def _failure_of(worker: Worker) -> CommandFailed | None:
    """Run the worker; return why it could not continue, if so."""
    try:
        worker.run()
    except WorkerFailed as error:
        text = one_line(error)
        if isinstance(error.__cause__, CannotRun) and not worker.stats.failed:
            text += "; no message was made dead"
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
    """Find `name`, also in the current directory; raise WorkerFailed."""
    sys.path.insert(0, str(Path.cwd()))
    find_handler(name, arguments)
    return name


def _print_stats(stats: WorkerStats, as_json: bool) -> None:
    if as_json:
        print_json(stats)
    else:
        say(summary(stats))
