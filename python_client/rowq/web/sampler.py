"""Looks at a database for everybody who looks, and only while somebody does.

A thread makes a sample every few seconds while there are viewers, tells them what has changed, and
ends with the last of them. A page that nobody follows takes the last sample while it is fresh.
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
from rowq.web.databases import PATIENCE_SECONDS, Database, is_expected

_log = logging.getLogger("rowq.web")

REGIONS = frozenset({"queues", "health", "claims"})
"""The parts of a page that change, as viewers are told of them."""
MAX_COUNT = 10_000
"""Counting stops here, so that a look at a huge queue stays cheap."""
MAX_CLAIMS = 1_000
END = "end"
"""What viewers are told instead of a change when nothing comes any more."""
# With the usual interval of two seconds, health is asked every ten and claims every four; workers
# every ten, as they report.
_HEALTH_EVERY = 5
_CLAIMS_EVERY = 2
_WORKERS_EVERY = 5
# This bounds the memory of all series together; a queue has an hour of it at most.
_MOST_POINTS = 200_000
_LONGEST_SERIES = 1_800
_MOST_VIEWERS = 500
# A peek brings bodies along, which are not shown.
_READY = 5
_DELAYED = 10
# What comes next is asked again when counts have changed, or after so many seconds.
_FOLLOWING_SECONDS = 30.0
_MOST_FOLLOWED = 200

Point = tuple[float, int, int, int, int, float]
"""A moment in seconds since 1970; messages ready, delayed, leased, dead; the oldest one's age."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was found: parts of it may be older than the rest.

    at: when. workers_at, claims_at: when these were, None for never. error: why the last look
    failed; everything else is then what the one before has found.
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
        """Return what was found of a queue."""
        return next((stats for stats in self.queues if stats.queue_name == name), None)

    def rates_of(self, name: str) -> Rates:
        """Return how many messages a second come into a queue, leave it, and fail."""
        return self.rates.get(name, Rates())


@dataclass(frozen=True, slots=True)
class Following:
    """What comes next in a queue; ready is empty for who may not see it."""

    ready: tuple[PeekedMessage, ...]
    delayed: tuple[DelayedMessage, ...]


class Viewer:
    """Somebody who is told what has changed, in an event loop."""

    def __init__(self, *, wants_claims: bool) -> None:
        """Begin in the running event loop; nothing has changed yet."""
        self.wants_claims = wants_claims
        self._loop = asyncio.get_running_loop()
        self._something = asyncio.Event()
        self._changed: set[str] = set()

    def tell(self, changed: set[str]) -> None:
        """Note changes; called in any thread."""
        self._loop.call_soon_threadsafe(self._note, changed)

    async def changes(self, seconds: float) -> set[str]:
        """Return what has changed: queues, health, claims; an empty set when the time is up."""
        try:
            await asyncio.wait_for(self._something.wait(), seconds)
        except TimeoutError:
            return set()
        self._something.clear()
        changed, self._changed = self._changed, set()
        return changed

    def _note(self, changed: set[str]) -> None:
        self._changed |= changed
        self._something.set()


@dataclass(slots=True)
class _State:
    """What the thread and the pages share, under one lock.

    era, claims_era: what the sampler's era was when the last sample, and its claims, were begun.
    changed: what has changed since viewers were last told.
    """

    last: Sample | None = None
    made_at: float = float("-inf")
    era: object = None
    claims_made_at: float = float("-inf")
    claims_era: object = None
    changed: set[str] = field(default_factory=set)
    count: int = 0
    series: dict[str, deque[Point]] = field(default_factory=dict)
    throughput: Throughput[str] = field(default_factory=lambda: Throughput(MAX_COUNT))
    following: dict[tuple[str, bool], tuple[tuple[int, int, object], float, Following]] = field(
        default_factory=dict
    )


class Sampler:
    """The samples of one database."""

    def __init__(self, database: Database, interval: float) -> None:
        """Prepare, and look at nothing.

        interval: seconds between two samples.
        """
        self._database = database
        self._interval = interval
        self._state = _State()
        # One sample is made at a time, and the state changes under the same lock.
        self._sampling = threading.Lock()
        # The series are read also while a sample takes long.
        self._drawing = threading.Lock()
        self._viewers: set[Viewer] = set()
        self._viewing = threading.Lock()
        self._has_ended = False
        # What was begun in an earlier era does not have what was done since.
        self._era = object()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def sample(self, *, claims: bool = False) -> Sample:
        """Return the last sample while it is fresh, else a new one.

        claims: whether those must be fresh, too. Raises TimedOutError while another look hangs.
        """
        if not self._sampling.acquire(timeout=2 * PATIENCE_SECONDS):
            raise TimedOutError("the last look at the database has not ended yet")
        try:
            state, oldest = self._state, time.monotonic() - self._interval
            is_old = state.made_at < oldest or state.era is not self._era
            are_old = state.claims_made_at < oldest or state.claims_era is not self._era
            if state.last is None or is_old or (claims and are_old):
                is_first = state.last is None
                workers = is_first or (self._thread is None and self._has_old_workers())
                return self._make(health=is_first, claims=claims, workers=workers)
            return state.last
        finally:
            self._sampling.release()

    def following(self, queue_name: str, *, has_ready: bool) -> Following:
        """Return what comes next in a queue, asked anew when its counts have changed.

        has_ready: whether what is ready is asked for, too.
        """
        era = self._era
        stats = self.sample().queue(queue_name)
        counts = (stats.ready, stats.delayed, era) if stats else (0, 0, era)
        kept, place = self._state.following, (queue_name, has_ready)
        known = kept.get(place)
        now = time.monotonic()
        if known and known[0] == counts and now - known[1] < _FOLLOWING_SECONDS:
            return known[2]
        found = self._database.call(lambda queue: _next_in(queue, queue_name, has_ready))
        if len(kept) >= _MOST_FOLLOWED:
            kept.clear()
        kept[place] = (counts, now, found)
        return found

    def expire(self) -> None:
        """Have the next sample made at once: something was done."""
        self._era = object()
        self._wake.set()

    def begin(self) -> None:
        """Let viewers in, after an end, too."""
        with self._viewing:
            self._has_ended = False

    def end(self) -> None:
        """Tell the viewers that nothing comes any more, and let no other one in."""
        with self._viewing:
            self._has_ended = True
        self._tell({END})

    def points(self, queue_name: str, after: float) -> list[Point]:
        """Return what is known of a queue's last hour, after a moment in seconds since 1970."""
        with self._drawing:
            return [point for point in self._state.series.get(queue_name, ()) if point[0] > after]

    def trend(self, count: int) -> Mapping[str, list[int]]:
        """Return how many messages were ready in each queue's last samples, the oldest first."""
        with self._drawing:
            return {
                name: [point[1] for point in list(series)[-count:]]
                for name, series in self._state.series.items()
            }

    @property
    def is_full(self) -> bool:
        """Whether there are as many viewers as there may be, or the page ends."""
        return self._has_ended or len(self._viewers) >= _MOST_VIEWERS

    @contextmanager
    def viewing(self, *, wants_claims: bool) -> Iterator[Viewer]:
        """Be a viewer for the length of a block."""
        viewer = Viewer(wants_claims=wants_claims)
        try:
            with self._viewing:
                self._viewers.add(viewer)
                if self._has_ended:
                    viewer.tell({END})
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
        """Make samples until nobody looks, whatever becomes of one of them."""
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
                    self._tell(changed)
            except Exception:
                _log.exception("%s could not be looked at", self._database.name)

    def _next(self, *, claims: bool) -> set[str]:
        """Make the next sample unless a page has just done so; return what was not told yet."""
        with self._sampling:
            state = self._state
            is_old = time.monotonic() - state.made_at >= self._interval / 2
            if is_old or state.era is not self._era:
                state.count += 1
                self._make(
                    health=state.count % _HEALTH_EVERY == 0,
                    claims=claims and state.count % _CLAIMS_EVERY == 0,
                    # Not in the same look as health.
                    workers=state.count % _WORKERS_EVERY == 1,
                )
            changed, state.changed = state.changed, set()
            return changed

    def _tell(self, changed: set[str]) -> None:
        # Who has come since the sample was begun may have seen the one before, and is told, too.
        with self._viewing:
            viewers = list(self._viewers)
        for viewer in viewers:
            try:
                viewer.tell(changed)
            except RuntimeError:  # Its event loop has ended, and with it the viewer.
                with self._viewing:
                    self._viewers.discard(viewer)

    def _has_old_workers(self) -> bool:
        """Whether the workers are older than they may get while somebody is told of changes."""
        last = self._state.last
        at = last.workers_at if last else None
        longest = timedelta(seconds=_WORKERS_EVERY * self._interval)
        return at is None or datetime.now(UTC) - at > longest

    def _make(self, *, health: bool, claims: bool, workers: bool) -> Sample:
        state, era = self._state, self._era
        last = state.last or Sample(datetime.now(UTC))
        try:
            found = self._database.call(lambda queue: _look(queue, last, health, claims, workers))
        except Exception as error:
            if not is_expected(error):
                raise
            found = replace(last, error=self._database.described(error))
        else:
            found = replace(found, rates=self._rates(found))
        state.changed |= _changes(state.last, found)
        state.last, state.made_at, state.era = found, time.monotonic(), era
        if claims:
            state.claims_made_at, state.claims_era = state.made_at, era
        if found.error is None:
            with self._drawing:
                self._remember(found)
        return found

    def _rates(self, sample: Sample) -> dict[str, Rates]:
        queues = {stats.queue_name: stats for stats in sample.queues}
        throughput = self._state.throughput
        throughput.note(time.monotonic(), queues, by_queue(sample.workers))
        return {name: throughput.of(name).rounded() for name in queues}

    def _remember(self, sample: Sample) -> None:
        room = min(_LONGEST_SERIES, max(_MOST_POINTS // max(len(sample.queues), 1), 2))
        names = {stats.queue_name for stats in sample.queues}
        series = {name: old for name, old in self._state.series.items() if name in names}
        for stats in sample.queues:
            points = series.get(stats.queue_name)
            if points is None or points.maxlen != room:
                points = series[stats.queue_name] = deque(points or (), maxlen=room)
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


def _look(queue: Queue, last: Sample, health: bool, claims: bool, workers: bool) -> Sample:
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
            # What is left of a lease changes with each look, and how long ago a worker reported.
            ("claims", (before.claims, before.workers) != (now.claims, now.workers)),
        )
        if changed
    }
