"""stats: how many messages the queues hold, how fast these come and go, and the workers."""

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
from rowq.tools.console.output import LEVEL_STYLES, console, place_of, print_json, record, table
from rowq.tools.throughput import LIVE_SECONDS, Throughput, by_queue, listed_workers, tenth

_COUNTS = ("ready", "delayed", "leased", "dead", "blocked")
_SHOWN = ("queue_name", "is_paused", *_COUNTS, "oldest_ready_seconds")


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Operation")(stats)


def stats(
    url: Urls,
    queue_name: AnyQueue = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 2.0,
    max_count: Annotated[
        int, typer.Option(help="Count no further; a count that reaches it is shown with a +.")
    ] = 100_000,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Show how many messages of each kind the queues hold, and their workers, idle ones too.

    out/s and failed/s are what the workers report, every ten seconds. --watch shows in/s, too,
    reckoned from the looks of the last ten seconds.
    """
    if stripes is not None:
        if queue_name is None:
            raise typer.BadParameter("--stripes is for one queue: name it")
        with open_striped(url, queue_name, stripes) as striped:
            _show(lambda: _stripes(striped, max_count), max_count, watch, interval, as_json)
        return
    with open_queue(only_url(url)) as queue:
        _show(lambda: _queues(queue, queue_name, max_count), max_count, watch, interval, as_json)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look has found of a queue, or of a stripe: stats is None where its server is away.

    workers: None where they may not be listed. more: what else there is to say.
    """

    place: Mapping[str, Any]
    stats: QueueStats | None
    workers: Sequence[WorkerReport] | None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others."""
        return tuple(self.place.values())


def _queues(queue: Queue, queue_name: str | None, max_count: int) -> list[_Found]:
    found = queue.queue_stats(queue_name, max_count=max_count)
    listed = _listed(queue, queue_name)
    return [
        _Found({"queue_name": one.queue_name}, one, _of(one.queue_name, listed)) for one in found
    ]


def _stripes(striped: Striped, max_count: int) -> list[_Found]:
    """Look at all stripes; at one whose server does not answer, find the reason."""
    found = striped.queue_stats(max_count=max_count)
    asked = {one.stripe.server: one.stripe for one in found if one.stats is not None}
    listed = {server: _listed(striped.queue_of(stripe)) for server, stripe in asked.items()}
    return [
        _Found(
            place_of(one.stripe),
            one.stats,
            _of(one.stripe.queue_name, listed.get(one.stripe.server)),
            {} if one.stripe.server is None else {"error": one.error},
        )
        for one in found
    ]


def _listed(queue: Queue, queue_name: str | None = None) -> dict[str, list[WorkerReport]] | None:
    """Return workers by queue; None where they may not be listed, or the server is away now."""
    try:
        workers = listed_workers(queue, queue_name)
    except (CannotConnect, ConnectionLost):
        return None
    return None if workers is None else by_queue(workers)


def _of(name: str, listed: Mapping[str, list[WorkerReport]] | None) -> list[WorkerReport] | None:
    return None if listed is None else listed.get(name, [])


def _show(
    look: Callable[[], list[_Found]],
    max_count: int,
    watch: bool,
    interval: float,
    as_json: bool,
) -> None:
    shown = _Shown(max_count, is_watched=watch)
    shown.note(look())
    shown.write(as_json)
    if not watch:
        return
    with suppress(KeyboardInterrupt):
        if as_json or not sys.stdout.isatty():
            while True:
                sys.stdout.flush()
                time.sleep(interval)
                shown.note(look())
                shown.write(as_json)
        with Live(console=console(), auto_refresh=False, screen=True) as live:
            while True:
                live.update(shown.drawn(), refresh=True)
                time.sleep(interval)
                shown.note(look())


class _Shown:
    """What is printed of each look."""

    def __init__(self, max_count: int, *, is_watched: bool) -> None:
        """Begin without a look; only of looks that are watched it is known what comes in."""
        self._max_count = max_count
        self._is_watched = is_watched
        self._throughput: Throughput[tuple[Any, ...]] = Throughput(max_count)
        self._found: Sequence[_Found] = ()

    def note(self, found: Sequence[_Found]) -> None:
        """Take the next look."""
        self._found = found
        self._throughput.note(
            time.monotonic(),
            {one.key: one.stats for one in found if one.stats is not None},
            {one.key: one.workers or () for one in found},
        )

    def write(self, as_json: bool) -> None:
        """Print a line of JSON for each queue, or tables."""
        if as_json:
            for one in self._found:
                print_json(self._record(one))
        else:
            console().print(self.drawn())

    def drawn(self) -> Group | str:
        """Return tables of the counts, the rates and the workers."""
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

    def _facts(self, one: _Found) -> dict[str, Any]:
        stats = dict.fromkeys(_SHOWN[1:]) if one.stats is None else record(one.stats)
        return {**one.place, **stats, **one.more}

    def _counted(self, one: _Found) -> dict[str, Any]:
        """Return a queue's stats for people: a count that was cut off says so."""
        facts = self._facts(one)
        cut = [name for name in _COUNTS if (facts[name] or 0) >= self._max_count]
        return facts | {name: f"{facts[name]}+" for name in cut}

    def _rates(self, one: _Found) -> dict[str, float | None]:
        rates = self._throughput.of(one.key)
        known = {"in": rates.arrived} if self._is_watched else {}
        return known | {"out": rates.completed, "failed": rates.failed}

    def _record(self, one: _Found) -> dict[str, Any]:
        """Return all that is known of a queue, for programs."""
        rates = {f"{name}_per_second": rate for name, rate in self._rates(one).items()}
        workers = None if one.workers is None else [record(worker) for worker in one.workers]
        return self._facts(one) | rates | {"workers": workers}

    def _speed(self, one: _Found) -> dict[str, Any]:
        """Return a queue's live workers, and its rates, for people."""
        rates = {f"{name}/s": tenth(rate) for name, rate in self._rates(one).items()}
        return {**one.place, "workers": self._throughput.of(one.key).workers, **rates}

    def _worker(self, one: _Found, worker: WorkerReport) -> dict[str, Any]:
        return {
            **one.place,
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
