"""The queues of a database as metrics, and as a collector for a registry."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from rowq.messages import HealthCheck, QueueStats
from rowq.tools.metrics.sampling import Sample, Samples, Source
from rowq.worker.metrics import load_library

_STATES = ("ready", "delayed", "leased", "dead", "blocked")
_LEVELS = {"ok": 0, "warning": 1, "critical": 2}
_NO_SETTINGS = {"queue_name", "is_paused", *_STATES, "oldest_ready_seconds"}
_SETTINGS = [column.name for column in fields(QueueStats) if column.name not in _NO_SETTINGS]


def queue_metrics(look: Sample | None) -> Iterator[Any]:
    """Yield the families of metrics of a look: of one that failed, and of none, all but empty."""
    load_library()
    from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

    up = GaugeMetricFamily("rowq_up", "Whether the last look at the database succeeded.")
    took = GaugeMetricFamily("rowq_scrape_seconds", "How long the last look at the database took.")
    info = InfoMetricFamily("rowq", "What is installed in the database.")
    if look is not None:
        up.add_metric([], float(look.error is None))
        took.add_metric([], look.seconds)
        if look.version is not None:
            version = look.version
            labels = {
                "version": version.rowq_version,
                "schema": str(version.schema_version),
                "engine": version.engine,
            }
            info.add_metric([], labels)
    yield from (up, took, info)
    yield from _counts(look or Sample())
    yield from _facts(look or Sample())
    yield from _claims(look or Sample())
    yield from _health(look or Sample())


def _counts(look: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    by_state = ["queue", "state"]
    counts = GaugeMetricFamily("rowq_messages", "Messages by queue and state.", labels=by_state)
    capped = GaugeMetricFamily(
        "rowq_messages_capped",
        "Whether counting stopped, so that there are at least so many messages.",
        labels=by_state,
    )
    for queue in look.queues:
        for state in _STATES:
            count = getattr(queue, state)
            # An engine that has no such messages says nothing.
            if count is not None:
                counts.add_metric([queue.queue_name, state], count)
                capped.add_metric([queue.queue_name, state], float(count >= look.max_count))
    yield from (counts, capped)


def _facts(look: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    oldest = GaugeMetricFamily(
        "rowq_oldest_ready_seconds",
        "How long the oldest ready message has waited; 0 when none is ready.",
        labels=["queue"],
    )
    paused = GaugeMetricFamily(
        "rowq_queue_paused", "Whether the queue is paused.", labels=["queue"]
    )
    settings = GaugeMetricFamily(
        "rowq_queue_setting", "Settings of the queue that are numbers.", labels=["queue", "name"]
    )
    for queue in look.queues:
        oldest.add_metric([queue.queue_name], max(queue.oldest_ready_seconds or 0.0, 0.0))
        paused.add_metric([queue.queue_name], float(queue.is_paused))
        for name in _SETTINGS:
            value = getattr(queue, name)
            if isinstance(value, int | float):
                settings.add_metric([queue.queue_name, name], value)
    yield from (oldest, paused, settings)


def _claims(look: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    counts = GaugeMetricFamily(
        "rowq_claims",
        "Batches that workers hold, or held when their lease ran out; 10000 of all queues at most.",
        labels=["queue"],
    )
    left = GaugeMetricFamily(
        "rowq_lease_left_seconds_min",
        "How long the shortest lease still lasts, less than 0 where it has run out; absent without"
        " claims.",
        labels=["queue"],
    )
    leases: dict[str, list[float]] = {queue.queue_name: [] for queue in look.queues}
    for claim in look.claims:
        leases.setdefault(claim.queue_name, []).append(claim.lease_left_seconds)
    for name, seconds in leases.items():
        counts.add_metric([name], len(seconds))
        if seconds:
            left.add_metric([name], min(seconds))
    yield from (counts, left)


def _health(look: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    by_check = ["check", "queue"]
    levels = GaugeMetricFamily(
        "rowq_health",
        "What rowq health says: 0 is ok, 1 a warning, 2 critical; queue is empty for the server.",
        labels=by_check,
    )
    values = GaugeMetricFamily(
        "rowq_health_value", "What a check of rowq health has measured.", labels=by_check
    )
    for (name, queue), check in _worst(look.checks).items():
        labels = [name, queue]
        levels.add_metric(labels, _LEVELS[check.status])
        values.add_metric(labels, math.nan if check.value is None else check.value)
    yield from (levels, values)


def _worst(checks: Iterable[HealthCheck]) -> dict[tuple[str, str], HealthCheck]:
    """Return the checks by name and queue: of several nodes' the one that is worst."""
    worst: dict[tuple[str, str], HealthCheck] = {}
    for check in checks:
        labels = check.check_name, check.queue_name or ""
        if labels not in worst or _badness(check) > _badness(worst[labels]):
            worst[labels] = check
    return worst


def _badness(check: HealthCheck) -> tuple[int, float]:
    return _LEVELS[check.status], -math.inf if check.value is None else check.value


class Collector:
    """Looks at the queues of a database whenever its registry is scraped.

        prometheus_client.REGISTRY.register(rowq.tools.metrics.Collector("postgresql://..."))

    A look is one call each of version, queue_stats, list_claims and health, which the role
    rowq_monitor may make. It is made in a thread, at most once in `cache_seconds`, however many
    scrapes there are, and one at a time. When it fails, or takes longer than `timeout_seconds`,
    `rowq_up` is 0 and nothing is said of the queues; why stands in the log `rowq.metrics`, without
    passwords, and in `last_error`. No text of the database but names of queues, checks and versions
    is in a metric.
    """

    def __init__(
        self,
        source: Source,
        *,
        max_count: int = 10_000,
        cache_seconds: float = 5.0,
        timeout_seconds: float = 8.0,
    ) -> None:
        """Prepare, and open nothing.

        source          a URL, for a connection of the collector's own; or a callable that returns a
                        connection, such as a pool's, for each look: it is entered where it is a
                        context manager, and closed unless its owner wants it back; or a connection
                        in autocommit that only the collector uses
        max_count       count no more messages of a state than this: it limits what a look costs
        cache_seconds   for so long after a look its result is given again
        timeout_seconds a scrape waits no longer for a look, which may go on

        Raises PackageMissing without prometheus-client, EngineUnknown for what is no source, and
        InvalidArgument for a connection on which a look would leave a transaction open.
        """
        load_library()
        self._looks = Samples(source, max_count, cache_seconds, timeout_seconds)
        self.last_error: str | None = None

    def collect(self) -> Iterator[Any]:
        """Yield the families of metrics; raises nothing because of the database."""
        return queue_metrics(self.look())

    def describe(self) -> Iterator[Any]:
        """Yield the families without a look, for the registry to know their names."""
        return queue_metrics(None)

    def look(self) -> Sample:
        """Return the last look while it is fresh, else what a new one finds."""
        look = self._looks.get()
        self.last_error = None if look.error is None else self._looks.described(look.error)
        return look
