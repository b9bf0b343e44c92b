"""What a worker shows on a terminal: what it works on, and how far it is."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rowq.terminal import printable
from rowq.worker import WorkerStats
from rowq.worker.threads import OnProgress


def summary(stats: WorkerStats) -> str:
    """Return a worker's counts in words."""
    return (
        f"{stats.processed} completed, {stats.retried} to be retried, {stats.failed} failed,"
        f" {stats.released} given back, {stats.stale} lost to others"
        + (f", {stats.cancelled} cancelled" if stats.cancelled else "")
    )


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
