"""Figures of a run, medians with their range, and targets for ratios."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.load import Report

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Mark:
    """The server's counters at one time; cpu: seconds of the session that runs maintenance."""

    wal_bytes: int
    wal_fpi: int
    cpu: float


def work_figures(began: float, start: Mark, end: Mark, reports: Sequence[Report]) -> Figures:
    """Return the figures of sessions that started at `began`, between two marks."""
    messages = sum(report.messages for report in reports)
    seconds = max(report.ended for report in reports) - began
    loops = [length for report in reports for length in report.loops]
    cuts = statistics.quantiles(loops, n=100)
    server_cpu = sum(report.server_cpu for report in reports) + end.cpu - start.cpu
    return {
        "messages": messages,
        "seconds": round(seconds, 3),
        "messages_per_second": round(messages / seconds, 1),
        "wal_bytes_per_message": round((end.wal_bytes - start.wal_bytes) / messages, 1),
        "wal_full_page_images": end.wal_fpi - start.wal_fpi,
        "server_cpu_us_per_message": round(server_cpu / messages * 1e6, 2),
        "client_cpu_us_per_message": round(
            sum(report.client_cpu for report in reports) / messages * 1e6, 2
        ),
        "loop_ms_p50": round(cuts[49] * 1e3, 3),
        "loop_ms_p95": round(cuts[94] * 1e3, 3),
        "loop_ms_p99": round(cuts[98] * 1e3, 3),
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the minimum and maximum."""

    median: float
    least: float
    greatest: float


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio and its bound.

    what: describes the ratio. at_least: whether the bound is a minimum, otherwise a maximum.
    found: rowq's ratio, None if not measured. peer: pgmq's ratio, if measured.
    """

    what: str
    bound: float
    at_least: bool
    found: Spread | None
    peer: Spread | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the median is within the bound; None if not measured."""
        if self.found is None:
            return None
        if self.at_least:
            return self.found.median >= self.bound
        return self.found.median <= self.bound
