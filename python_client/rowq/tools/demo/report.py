"""The demo's progress, as bars on a terminal or as lines, and its result."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from rowq.tools.demo.ledger import Killed

_LINE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Report:
    """The demo's result; money in cents, times in seconds."""

    orders_in: int
    orders_done: int
    orders_redelivered: int
    orders_left: int
    expected_cents: Mapping[str, int]
    booked_cents: Mapping[str, int]
    enqueue_seconds: float
    drain_seconds: float
    killed: Killed | None

    @property
    def enqueued_per_second(self) -> float:
        """Messages enqueued per second."""
        return self.orders_in / self.enqueue_seconds

    @property
    def drained_per_second(self) -> float:
        """Orders booked per second, including the killed worker's lease and the workers' start."""
        return self.orders_done / self.drain_seconds

    def faults(self) -> list[str]:
        """Return every discrepancy in words."""
        if self.orders_left:
            done = f"{self.orders_done} of {self.orders_in} orders are done"
            return [f"{done}, {self.orders_left} are in the queue or dead"]
        found = different_months(self.expected_cents, self.booked_cents)
        if self.orders_done != self.orders_in:
            found.append(f"{self.orders_in} orders in, but {self.orders_done} done")
        if self.killed is None:
            found.append("no worker was killed")
        elif not self.orders_redelivered:
            found.append("a worker was killed, but no order was redelivered")
        return found


def different_months(expected: Mapping[str, int], booked: Mapping[str, int]) -> list[str]:
    """Return a sentence for every month whose totals differ."""
    return [
        f"{month}: {dollars(expected.get(month, 0))} in the file,"
        f" {dollars(booked.get(month, 0))} booked"
        for month in sorted(expected.keys() | booked.keys())
        if expected.get(month) != booked.get(month)
    ]


def dollars(cents: int) -> str:
    """Return cents as dollars, such as 1,234.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02}"


class Show:
    """Prints the progress; a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._task: TaskID | None = None
        self._label = ""
        self._next_line_at = 0.0
        self._bars = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=40),
            TextColumn("{task.completed:>6,.0f} of {task.total:,.0f} orders"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def begin(self, label: str, total: int) -> None:
        """Start a progress bar or lines for `label`."""
        self._label = label
        self._next_line_at = time.monotonic() + _LINE_SECONDS
        self._task = self._bars.add_task(label, total=total)

    def update(self, done: int) -> None:
        """Show that `done` orders of the current label are done."""
        assert self._task is not None
        self._bars.update(self._task, completed=done)
        if not self._console.is_terminal and time.monotonic() >= self._next_line_at:
            self._next_line_at = time.monotonic() + _LINE_SECONDS
            self.say(f"{self._label}: {done:,} orders")


def print_report(console: Console, report: Report) -> None:
    """Print the result as a table."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("month")
    for name in ("from the file", "through the queue", ""):
        table.add_column(name, justify="right")
    for month in sorted(report.expected_cents.keys() | report.booked_cents.keys()):
        expected, booked = report.expected_cents.get(month, 0), report.booked_cents.get(month, 0)
        table.add_row(month, dollars(expected), dollars(booked), _equality(expected, booked))
    table.add_section()
    expected, booked = sum(report.expected_cents.values()), sum(report.booked_cents.values())
    table.add_row("total", dollars(expected), dollars(booked), _equality(expected, booked))
    console.print(table)
    lines = {
        "orders in": f"{report.orders_in:,}",
        "done exactly once": f"{report.orders_done:,}",
        "redelivered": f"{report.orders_redelivered:,}",
        "enqueued": f"{report.enqueued_per_second:,.0f} orders/s",
        "dequeued": f"{report.drained_per_second:,.0f} orders/s, each booked and completed",
    }
    for name, value in lines.items():
        console.print(f"{name:<18} {value}", highlight=False, soft_wrap=True)


def _equality(expected: int, booked: int) -> str:
    return "equal" if expected == booked else "DIFFERENT"
