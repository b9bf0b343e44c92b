"""Samples of a database, shared by all viewers.

While there are viewers, a thread takes a sample every few seconds and notifies them of changes. It
ends with the last viewer. Any other page uses the last sample while it is fresh.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from rowq.engines.sockets import TimedOutError
from rowq.messages import (
    Claim,
    DelayedMessage,
    HealthCheck,
    PeekedMessage,
    QueueStats,
    WorkerReport,
)
from rowq.queue import Queue
from rowq.tools.throughput import Rates, Throughput, by_queue
from rowq.web.databases import CONNECTION_SECONDS, Database, is_expected

_log = logging.getLogger("rowq.web")

REGIONS = frozenset({"queues", "health", "claims"})
"""The parts of a page in notifications."""
MAX_COUNT = 10_000
"""Limit of counts, so that samples of a huge queue stay cheap."""
MAX_CLAIMS = 1_000
END = "end"
"""The last notification of a stream."""
# With the default interval of 2 s: health every 10 s, claims every 4 s, workers every 10 s, as they
# report.
_HEALTH_EVERY = 5
_CLAIMS_EVERY = 2
_WORKERS_EVERY = 5
# Limits of memory: points of all series, and of one series (an hour).
_MOST_POINTS = 200_000
_LONGEST_SERIES = 1_800
_MOST_VIEWERS = 500
# Peek returns bodies, which are not shown, so read few messages.
_READY = 5
_DELAYED = 10
# Next messages are read again when counts have changed, or after this time.
_FOLLOWING_SECONDS = 30.0
_MOST_FOLLOWED = 200

Point = tuple[float, int, int, int, int, float]
"""Unix time; messages ready, delayed, leased, dead; age of the oldest ready message."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a database at a time; workers and claims may be older, or never read (None).

    error: why the last sample failed; then everything else is from the sample before.
    """

    at: datetime
    queues: tuple[QueueStats, ...] = ()
    rates: Mapping[str, Rates] = field(default_factory=dict)
    workers: tuple[WorkerReport, ...] = ()
    workers_at: datetime | None = None
    checks: tuple[HealthCheck, ...] = ()
    claims: tuple[Claim, ...] = ()
    claims_at: datetime | None = None
    error: str | None = None

    def queue(self, name: str) -> QueueStats | None:
        """Return a queue's stats."""
        return next((stats for stats in self.queues if stats.queue_name == name), None)

    def rates_of(self, name: str) -> Rates:
        """Return a queue's rates of arrivals, completions and failures."""
        return self.rates.get(name, Rates())


@dataclass(frozen=True, slots=True)
class Following:
    """The next messages of a queue; `ready` is empty if the account cannot call peek."""

    ready: tuple[PeekedMessage, ...]
    delayed: tuple[DelayedMessage, ...]


class Viewer:
    """A browser connection that receives change events, in the running event loop."""

    def __init__(self, *, wants_claims: bool) -> None:
        self.wants_claims = wants_claims
        self._loop = asyncio.get_running_loop()
        self._has_changes = asyncio.Event()
        self._changed: set[str] = set()

    def notify(self, changed: set[str]) -> None:
        """Add changes; can be called in any thread."""
        self._loop.call_soon_threadsafe(self._add, changed)

    async def changes(self, seconds: float) -> set[str]:
        """Return the changed regions; an empty set after `seconds`."""
        try:
            await asyncio.wait_for(self._has_changes.wait(), seconds)
        except TimeoutError:
            return set()
        self._has_changes.clear()
        changed, self._changed = self._changed, set()
        return changed

    def _add(self, changed: set[str]) -> None:
        self._changed |= changed
        self._has_changes.set()


@dataclass(slots=True)
class _State:
    """State shared by the thread and the pages, under one lock.

    era, claims_era: the sampler's era when the last sample, and its claims, started.
    changed: changes since the last notification.
    """

    last: Sample | None = None
    taken_at: float = float("-inf")
    era: object = None
    claims_taken_at: float = float("-inf")
    claims_era: object = None
    changed: set[str] = field(default_factory=set)
    count: int = 0
    series: dict[str, deque[Point]] = field(default_factory=dict)
    throughput: Throughput[str] = field(default_factory=lambda: Throughput(MAX_COUNT))
    following: dict[tuple[str, bool], tuple[tuple[int, int, object], float, Following]] = field(
        default_factory=dict
    )


class Sampler:
    """Samples of one database, `interval` seconds apart."""

    def __init__(self, database: Database, interval: float) -> None:
        self._database = database
        self._interval = interval
        self._state = _State()
        # One sample at a time; the state changes under the same lock.
        self._sampling = threading.Lock()
        # The series can be read during a slow sample.
        self._drawing = threading.Lock()
        self._viewers: set[Viewer] = set()
        self._viewing = threading.Lock()
        self._has_ended = False
        # A sample from an earlier era may lack the effect of an action.
        self._era = object()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def sample(self, *, claims: bool = False) -> Sample:
        """Return the last sample while it is fresh, else a new one; raise TimedOutError.

        claims: whether the claims must be fresh.
        """
        if not self._sampling.acquire(timeout=2 * CONNECTION_SECONDS):
            raise TimedOutError("the database has not answered the last request yet; retry")
        try:
            state, oldest = self._state, time.monotonic() - self._interval
            is_old = state.taken_at < oldest or state.era is not self._era
            are_old = state.claims_taken_at < oldest or state.claims_era is not self._era
            if state.last is None or is_old or (claims and are_old):
                is_first = state.last is None
                workers = is_first or (self._thread is None and self._has_old_workers())
                return self._take(health=is_first, claims=claims, workers=workers)
            return state.last
        finally:
            self._sampling.release()

    def following(self, queue_name: str, *, has_ready: bool) -> Following:
        """Return the next messages of a queue, read again when its counts have changed.

        has_ready: whether to read ready messages.
        """
        era = self._era
        stats = self.sample().queue(queue_name)
        counts = (stats.ready, stats.delayed, era) if stats else (0, 0, era)
        cache, key = self._state.following, (queue_name, has_ready)
        known = cache.get(key)
        now = time.monotonic()
        if known and known[0] == counts and now - known[1] < _FOLLOWING_SECONDS:
            return known[2]
        found = self._database.call(lambda queue: _next_in(queue, queue_name, has_ready))
        if len(cache) >= _MOST_FOLLOWED:
            cache.clear()
        cache[key] = (counts, now, found)
        return found

    def expire(self) -> None:
        """Take the next sample at once, after an action."""
        self._era = object()
        self._wake.set()

    def begin(self) -> None:
        """Accept viewers, also again after an end."""
        with self._viewing:
            self._has_ended = False

    def end(self) -> None:
        """End the streams of the viewers, and accept no new ones."""
        with self._viewing:
            self._has_ended = True
        self._notify({END})

    def points(self, queue_name: str, after: float) -> list[Point]:
        """Return a queue's points of the last hour after a Unix time."""
        with self._drawing:
            return [point for point in self._state.series.get(queue_name, ()) if point[0] > after]

    def trend(self, count: int) -> Mapping[str, list[int]]:
        """Return the ready messages of each queue's last samples, oldest first."""
        with self._drawing:
            return {
                name: [point[1] for point in list(series)[-count:]]
                for name, series in self._state.series.items()
            }

    @property
    def is_full(self) -> bool:
        """Whether no more viewers are accepted."""
        return self._has_ended or len(self._viewers) >= _MOST_VIEWERS

    @contextmanager
    def viewing(self, *, wants_claims: bool) -> Iterator[Viewer]:
        """Register a viewer for a block."""
        viewer = Viewer(wants_claims=wants_claims)
        try:
            with self._viewing:
                self._viewers.add(viewer)
                if self._has_ended:
                    viewer.notify({END})
                elif self._thread is None:
                    thread = threading.Thread(target=self._watch, name="rowq-web", daemon=True)
                    thread.start()
                    self._thread = thread
            yield viewer
        finally:
            with self._viewing:
                self._viewers.discard(viewer)
                self._wake.set()

    def _watch(self) -> None:
        """Take samples until the last viewer leaves, despite errors."""
        while True:
            self._wake.wait(self._interval)
            self._wake.clear()
            with self._viewing:
                viewers = list(self._viewers)
                if not viewers:
                    self._thread = None
                    return
            try:
                changed = self._next(claims=any(viewer.wants_claims for viewer in viewers))
                if changed:
                    self._notify(changed)
            except Exception:
                _log.exception("cannot read %s", self._database.name)

    def _next(self, *, claims: bool) -> set[str]:
        """Take the next sample unless a page has just done so; return pending notifications."""
        with self._sampling:
            state = self._state
            is_old = time.monotonic() - state.taken_at >= self._interval / 2
            if is_old or state.era is not self._era:
                state.count += 1
                self._take(
                    health=state.count % _HEALTH_EVERY == 0,
                    claims=claims and state.count % _CLAIMS_EVERY == 0,
                    # Not in the same sample as health.
                    workers=state.count % _WORKERS_EVERY == 1,
                )
            changed, state.changed = state.changed, set()
            return changed

    def _notify(self, changed: set[str]) -> None:
        # Also notify viewers that came during the sample: they may have seen the one before.
        with self._viewing:
            viewers = list(self._viewers)
        for viewer in viewers:
            try:
                viewer.notify(changed)
            except RuntimeError:  # Its event loop has ended.
                with self._viewing:
                    self._viewers.discard(viewer)

    def _has_old_workers(self) -> bool:
        """Return whether the workers are older than they get while there are viewers."""
        last = self._state.last
        at = last.workers_at if last else None
        longest = timedelta(seconds=_WORKERS_EVERY * self._interval)
        return at is None or datetime.now(UTC) - at > longest

    def _take(self, *, health: bool, claims: bool, workers: bool) -> Sample:
        state, era = self._state, self._era
        last = state.last or Sample(datetime.now(UTC))
        try:
            found = self._database.call(lambda queue: _read(queue, last, health, claims, workers))
        except Exception as error:
            if not is_expected(error):
                raise
            found = replace(last, error=self._database.described(error))
        else:
            found = replace(found, rates=self._rates(found))
        state.changed |= _changes(state.last, found)
        state.last, state.taken_at, state.era = found, time.monotonic(), era
        if claims:
            state.claims_taken_at, state.claims_era = state.taken_at, era
        if found.error is None:
            with self._drawing:
                self._add_points(found)
        return found

    def _rates(self, sample: Sample) -> dict[str, Rates]:
        queues = {stats.queue_name: stats for stats in sample.queues}
        throughput = self._state.throughput
        throughput.record(time.monotonic(), queues, by_queue(sample.workers))
        return {name: throughput.of(name).rounded() for name in queues}

    def _add_points(self, sample: Sample) -> None:
        most = min(_LONGEST_SERIES, max(_MOST_POINTS // max(len(sample.queues), 1), 2))
        names = {stats.queue_name for stats in sample.queues}
        series = {name: old for name, old in self._state.series.items() if name in names}
        for stats in sample.queues:
            points = series.get(stats.queue_name)
            if points is None or points.maxlen != most:
                points = series[stats.queue_name] = deque(points or (), maxlen=most)
            points.append(
                (
                    sample.at.timestamp(),
                    stats.ready,
                    stats.delayed,
                    stats.leased,
                    stats.dead,
                    stats.oldest_ready_seconds or 0.0,
                )
            )
        self._state.series = series


def _read(queue: Queue, last: Sample, health: bool, claims: bool, workers: bool) -> Sample:
    found = replace(
        last,
        at=datetime.now(UTC),
        queues=tuple(queue.queue_stats(max_count=MAX_COUNT)),
        checks=tuple(queue.health()) if health else last.checks,
        error=None,
    )
    if workers:
        listed = tuple(queue.list_workers())
        found = replace(found, workers=listed, workers_at=datetime.now(UTC))
    if claims:
        held = tuple(queue.list_claims(max_claims=MAX_CLAIMS))
        found = replace(found, claims=held, claims_at=datetime.now(UTC))
    return found


def _next_in(queue: Queue, name: str, has_ready: bool) -> Following:
    ready = queue.peek(name, max_messages=_READY) if has_ready else ()
    return Following(tuple(ready), tuple(queue.list_delayed(name, max_messages=_DELAYED)))


def _changes(before: Sample | None, now: Sample) -> set[str]:
    if before is None:
        return set(REGIONS)
    return {
        region
        for region, changed in (
            (
                "queues",
                (before.queues, before.rates, before.error) != (now.queues, now.rates, now.error),
            ),
            ("health", before.checks != now.checks),
            # These include ages, so they change with each sample.
            ("claims", (before.claims, before.workers) != (now.claims, now.workers)),
        )
        if changed
    }
