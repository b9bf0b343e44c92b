"""The command stats."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table

from rowq.contrib.striped import Striped
from rowq.errors import CannotConnect, ConnectionLost
from rowq.messages import QueueStats, WorkerReport
from rowq.queue import Queue
from rowq.tools.command.striped import open_striped
from rowq.tools.console.database import only_url, open_queue
from rowq.tools.console.options import AnyQueue, AsJson, Stripes, Urls
from rowq.tools.console.output import LEVEL_STYLES, console, location_of, print_json, record, table
from rowq.tools.throughput import LIVE_SECONDS, Throughput, by_queue, listed_workers, tenth

_COUNTS = ("ready", "delayed", "leased", "dead", "blocked")
_SHOWN = ("queue_name", "is_paused", *_COUNTS, "oldest_ready_seconds")


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Operation")(stats)


def stats(
    url: Urls,
    queue_name: AnyQueue = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(help="Refresh interval in seconds.", min=0.1)] = 2.0,
    max_count: Annotated[
        int, typer.Option(help="Stop counting at this number; then a + is shown.")
    ] = 100_000,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Show message counts, rates and workers.

    Workers report out/s and failed/s every 10 seconds. With --watch, in/s is the average of the
    last 10 seconds.
    """
    if stripes is not None:
        if queue_name is None:
            raise typer.BadParameter("--stripes requires QUEUE")
        with open_striped(url, queue_name, stripes) as striped:
            _show(lambda: _stripes(striped, max_count), max_count, watch, interval, as_json)
        return
    with open_queue(only_url(url)) as queue:
        _show(lambda: _queues(queue, queue_name, max_count), max_count, watch, interval, as_json)


@dataclass(frozen=True, slots=True)
class _Sample:
    """One sample of a queue or stripe.

    stats: None if its server is unreachable. workers: None if they cannot be listed.
    extra: further columns.
    """

    location: Mapping[str, Any]
    stats: QueueStats | None
    workers: Sequence[WorkerReport] | None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """The identity of the queue or stripe."""
        return tuple(self.location.values())


def _queues(queue: Queue, queue_name: str | None, max_count: int) -> list[_Sample]:
    found = queue.queue_stats(queue_name, max_count=max_count)
    listed = _listed(queue, queue_name)
    return [
        _Sample({"queue_name": one.queue_name}, one, _of(one.queue_name, listed)) for one in found
    ]


def _stripes(striped: Striped, max_count: int) -> list[_Sample]:
    """Sample all stripes; the error is a column."""
    found = striped.queue_stats(max_count=max_count)
    asked = {one.stripe.server: one.stripe for one in found if one.stats is not None}
    listed = {server: _listed(striped.queue_of(stripe)) for server, stripe in asked.items()}
    return [
        _Sample(
            location_of(one.stripe),
            one.stats,
            _of(one.stripe.queue_name, listed.get(one.stripe.server)),
            {} if one.stripe.server is None else {"error": one.error},
        )
        for one in found
    ]


def _listed(queue: Queue, queue_name: str | None = None) -> dict[str, list[WorkerReport]] | None:
    """Return workers by queue; None if they cannot be listed, or the server is unreachable."""
    try:
        workers = listed_workers(queue, queue_name)
    except (CannotConnect, ConnectionLost):
        return None
    return None if workers is None else by_queue(workers)


def _of(name: str, listed: Mapping[str, list[WorkerReport]] | None) -> list[WorkerReport] | None:
    return None if listed is None else listed.get(name, [])


def _show(
    sample: Callable[[], list[_Sample]],
    max_count: int,
    watch: bool,
    interval: float,
    as_json: bool,
) -> None:
    shown = _Shown(max_count, is_watched=watch)
    shown.record(sample())
    shown.write(as_json)
    if not watch:
        return
    with suppress(KeyboardInterrupt):
        if as_json or not sys.stdout.isatty():
            while True:
                sys.stdout.flush()
                time.sleep(interval)
                shown.record(sample())
                shown.write(as_json)
        with Live(console=console(), auto_refresh=False, screen=True) as live:
            while True:
                live.update(shown.drawn(), refresh=True)
                time.sleep(interval)
                shown.record(sample())


class _Shown:
    """Print samples. The rate of arrivals is known only if they are watched."""

    def __init__(self, max_count: int, *, is_watched: bool) -> None:
        self._max_count = max_count
        self._is_watched = is_watched
        self._throughput: Throughput[tuple[Any, ...]] = Throughput(max_count)
        self._found: Sequence[_Sample] = ()

    def record(self, found: Sequence[_Sample]) -> None:
        """Add a sample of all queues."""
        self._found = found
        self._throughput.record(
            time.monotonic(),
            {one.key: one.stats for one in found if one.stats is not None},
            {one.key: one.workers or () for one in found},
        )

    def write(self, as_json: bool) -> None:
        """Print one line of JSON per queue, or tables."""
        if as_json:
            for one in self._found:
                print_json(self._record(one))
        else:
            console().print(self.drawn())

    def drawn(self) -> Group | str:
        """Return tables of counts, rates and workers."""
        if not self._found:
            return "no queues"
        counts = [self._counted(one) for one in self._found]
        columns = ("server", *_SHOWN, "error") if "server" in counts[0] else _SHOWN
        tables: list[Table | str] = [table(counts, columns)]
        known = [one for one in self._found if one.workers is not None]
        workers = [self._worker(one, worker) for one in known for worker in one.workers or ()]
        if known and (workers or self._is_watched):
            tables.append(table([self._speed(one) for one in known]))
        if workers:
            tables.append(table(workers, style=_style))
        elif known:
            tables.append("no worker reports")
        return Group(*tables)

    def _facts(self, one: _Sample) -> dict[str, Any]:
        stats = dict.fromkeys(_SHOWN[1:]) if one.stats is None else record(one.stats)
        return {**one.location, **stats, **one.extra}

    def _counted(self, one: _Sample) -> dict[str, Any]:
        """Return a queue's stats, with a + after a count that reached its limit."""
        facts = self._facts(one)
        cut = [name for name in _COUNTS if (facts[name] or 0) >= self._max_count]
        return facts | {name: f"{facts[name]}+" for name in cut}

    def _rates(self, one: _Sample) -> dict[str, float | None]:
        rates = self._throughput.of(one.key)
        known = {"in": rates.arrived} if self._is_watched else {}
        return known | {"out": rates.completed, "failed": rates.failed}

    def _record(self, one: _Sample) -> dict[str, Any]:
        """Return everything about a queue, for JSON."""
        rates = {f"{name}_per_second": rate for name, rate in self._rates(one).items()}
        workers = None if one.workers is None else [record(worker) for worker in one.workers]
        return self._facts(one) | rates | {"workers": workers}

    def _speed(self, one: _Sample) -> dict[str, Any]:
        """Return a queue's live workers and rates, for a table."""
        rates = {f"{name}/s": tenth(rate) for name, rate in self._rates(one).items()}
        return {**one.location, "workers": self._throughput.of(one.key).workers, **rates}

    def _worker(self, one: _Sample, worker: WorkerReport) -> dict[str, Any]:
        return {
            **one.location,
            "worker": worker.worker_name,
            "host": worker.host_name,
            "version": worker.worker_version,
            "threads": worker.threads,
            "out/s": tenth(worker.completed_per_second),
            "failed/s": tenth(worker.failed_per_second),
            "last_seen_seconds": tenth(worker.last_seen_seconds),
        }


def _style(worker: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES["warning"] if worker["last_seen_seconds"] > LIVE_SECONDS else None
