"""What a worker shows on a terminal: what it works on, how far it is, and that it stops."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rowq.tools.console.streams import say
from rowq.tools.terminal import printable
from rowq.worker import WorkerStats
from rowq.worker.context import StopSignals
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
