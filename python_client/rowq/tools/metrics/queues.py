"""Metrics of the queues of a database, and their collector."""

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


def queue_metrics(sample: Sample | None) -> Iterator[Any]:
    """Yield the metric families of a sample; mostly empty if it failed or is None."""
    load_library()
    from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

    up = GaugeMetricFamily("rowq_up", "1 if the last sample of the database succeeded.")
    took = GaugeMetricFamily("rowq_scrape_seconds", "Duration of the last sample in seconds.")
    info = InfoMetricFamily("rowq", "Versions installed in the database.")
    if sample is not None:
        up.add_metric([], float(sample.error is None))
        took.add_metric([], sample.seconds)
        if sample.version is not None:
            version = sample.version
            labels = {
                "version": version.rowq_version,
                "schema": str(version.schema_version),
                "engine": version.engine,
            }
            info.add_metric([], labels)
    yield from (up, took, info)
    yield from _counts(sample or Sample())
    yield from _facts(sample or Sample())
    yield from _claims(sample or Sample())
    yield from _health(sample or Sample())


def _counts(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    by_state = ["queue", "state"]
    counts = GaugeMetricFamily("rowq_messages", "Messages by queue and state.", labels=by_state)
    capped = GaugeMetricFamily(
        "rowq_messages_capped",
        "1 if counting stopped at the maximum, so that there may be more messages.",
        labels=by_state,
    )
    for queue in sample.queues:
        for state in _STATES:
            count = getattr(queue, state)
            # An engine without such messages has no series.
            if count is not None:
                counts.add_metric([queue.queue_name, state], count)
                capped.add_metric([queue.queue_name, state], float(count >= sample.max_count))
    yield from (counts, capped)


def _facts(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    oldest = GaugeMetricFamily(
        "rowq_oldest_ready_seconds",
        "Seconds the oldest ready message has waited; 0 if none is ready.",
        labels=["queue"],
    )
    paused = GaugeMetricFamily("rowq_queue_paused", "1 if the queue is paused.", labels=["queue"])
    settings = GaugeMetricFamily(
        "rowq_queue_setting", "Numeric settings of the queue.", labels=["queue", "name"]
    )
    for queue in sample.queues:
        oldest.add_metric([queue.queue_name], max(queue.oldest_ready_seconds or 0.0, 0.0))
        paused.add_metric([queue.queue_name], float(queue.is_paused))
        for name in _SETTINGS:
            value = getattr(queue, name)
            if isinstance(value, int | float):
                settings.add_metric([queue.queue_name, name], value)
    yield from (oldest, paused, settings)


def _claims(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    counts = GaugeMetricFamily(
        "rowq_claims",
        "Claims, expired ones included; at most 10000 for all queues.",
        labels=["queue"],
    )
    left = GaugeMetricFamily(
        "rowq_lease_left_seconds_min",
        "Seconds left of the shortest lease, negative if it has expired; absent without claims.",
        labels=["queue"],
    )
    leases: dict[str, list[float]] = {queue.queue_name: [] for queue in sample.queues}
    for claim in sample.claims:
        leases.setdefault(claim.queue_name, []).append(claim.lease_left_seconds)
    for name, seconds in leases.items():
        counts.add_metric([name], len(seconds))
        if seconds:
            left.add_metric([name], min(seconds))
    yield from (counts, left)


def _health(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    by_check = ["check", "queue"]
    levels = GaugeMetricFamily(
        "rowq_health",
        "Level of a health check: 0 ok, 1 warning, 2 critical; queue is empty for the server.",
        labels=by_check,
    )
    values = GaugeMetricFamily(
        "rowq_health_value", "Measured value of a health check.", labels=by_check
    )
    for (name, queue), check in _worst(sample.checks).items():
        labels = [name, queue]
        levels.add_metric(labels, _LEVELS[check.status])
        values.add_metric(labels, math.nan if check.value is None else check.value)
    yield from (levels, values)


def _worst(checks: Iterable[HealthCheck]) -> dict[tuple[str, str], HealthCheck]:
    """Return the checks by name and queue; of several nodes the worst."""
    worst: dict[tuple[str, str], HealthCheck] = {}
    for check in checks:
        labels = check.check_name, check.queue_name or ""
        if labels not in worst or _severity(check) > _severity(worst[labels]):
            worst[labels] = check
    return worst


def _severity(check: HealthCheck) -> tuple[int, float]:
    return _LEVELS[check.status], -math.inf if check.value is None else check.value


class Collector:
    """Samples the queues of a database when its registry is scraped.

        prometheus_client.REGISTRY.register(rowq.tools.metrics.Collector("postgresql://..."))

    A sample is one call each of version, queue_stats, list_claims and health; the role rowq_monitor
    suffices. Samples are taken in a thread, one at a time and at most once in `cache_seconds`. If a
    sample fails or exceeds `timeout_seconds`, `rowq_up` is 0 and the queue metrics are missing; the
    reason, without passwords, is in the log `rowq.metrics` and in `last_error`. The only texts in
    metrics are names of queues and checks, and versions.
    """

    def __init__(
        self,
        source: Source,
        *,
        max_count: int = 10_000,
        cache_seconds: float = 5.0,
        timeout_seconds: float = 8.0,
    ) -> None:
        """Check the arguments; connect on the first sample.

        source          a URL; or a connection in autocommit that only the collector uses; or a
                        callable that returns a connection for each sample, such as a pool's: it is
                        entered if it is a context manager, and closed unless it belongs to a pool
        max_count       stop counting the messages of a state here, which limits the cost
        cache_seconds   how long a sample is reused
        timeout_seconds how long a scrape waits for a sample, which continues in the background

        Raises PackageMissing without prometheus-client, EngineUnknown for an unknown source, and
        InvalidArgument for a connection that is not in autocommit.
        """
        load_library()
        self._samples = Samples(source, max_count, cache_seconds, timeout_seconds)
        self.last_error: str | None = None

    def collect(self) -> Iterator[Any]:
        """Yield the metric families, also if the database fails."""
        return queue_metrics(self.sample())

    def describe(self) -> Iterator[Any]:
        """Yield the metric families without a sample, so that the registry knows their names."""
        return queue_metrics(None)

    def sample(self) -> Sample:
        """Return the last sample while it is fresh, else a new one."""
        sample = self._samples.get()
        self.last_error = None if sample.error is None else self._samples.described(sample.error)
        return sample
