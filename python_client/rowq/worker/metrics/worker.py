"""Metrics and probes of a worker."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import Any

from rowq.errors import WorkerFailed
from rowq.worker.context import Settings
from rowq.worker.meter import BOUNDS, Event, Measured, Measures, Times
from rowq.worker.metrics.server import LIVE, Page, metrics_page, probe_answer, serving

_OUTCOMES: Mapping[str, str] = {
    "completed": "processed",
    "retried": "retried",
    "dead": "failed",
    "released": "released",
    "snoozed": "snoozed",
    "stale": "stale",
    "cancelled": "cancelled",
}
"""Counts of WorkerStats by outcome."""
_COUNTED: tuple[tuple[str, str, str, Mapping[str, Event]], ...] = (
    (
        "rowq_worker_polls_total",
        "Answered dequeues, by whether they found messages.",
        "result",
        {"found": "found", "empty": "empty"},
    ),
    (
        "rowq_worker_errors_total",
        "Exceptions of handlers, and failed database calls that are retried.",
        "kind",
        {"handler": "handler_error", "database": "database_error"},
    ),
    (
        "rowq_worker_leases_total",
        "Extended and lost leases.",
        "result",
        {"extended": "lease_extended", "lost": "lease_lost"},
    ),
)


class WorkerCollector:
    """Collector of a worker's measures for a prometheus_client registry."""

    def __init__(self, queue_name: str, measured: Measured) -> None:
        """Collect from a worker of this queue."""
        self._queue_name = queue_name
        self._measured = measured

    def collect(self) -> Iterator[Any]:
        """Yield the metric families; every series exists from the start."""
        measures = self._measured.measures()
        yield from self._counters(measures)
        yield from self._gauges(measures)
        yield self._histogram(
            "rowq_worker_handler_seconds",
            "Duration of handler calls.",
            measures.handled,
        )
        yield self._histogram(
            "rowq_worker_wait_seconds",
            "Time from enqueue to first delivery, including the delay.",
            measures.waited,
        )

    def _counters(self, measures: Measures) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily

        messages = CounterMetricFamily(
            "rowq_worker_messages_total",
            "Messages by outcome.",
            labels=["queue", "outcome"],
        )
        for outcome, stat in _OUTCOMES.items():
            messages.add_metric([self._queue_name, outcome], getattr(measures.stats, stat))
        yield messages
        for name, documentation, label, events in _COUNTED:
            family = CounterMetricFamily(name, documentation, labels=["queue", label])
            for value, event in events.items():
                family.add_metric([self._queue_name, value], measures.events[event])
            yield family

    def _gauges(self, measures: Measures) -> Iterator[Any]:
        gauges = {
            "rowq_worker_ready": (
                "1 if the worker polls and extends its leases in time.",
                float(not measures.why_not_ready),
            ),
            "rowq_worker_held": ("Messages leased by the worker.", measures.held),
            "rowq_worker_oldest_claim_seconds": (
                "Age of the worker's oldest claim; 0 if there is none.",
                measures.oldest_claim_seconds,
            ),
            "rowq_worker_last_poll_timestamp_seconds": (
                "Time of the last answered dequeue; the earliest of several processes.",
                measures.last_poll_at or 0.0,
            ),
        }
        from prometheus_client.core import GaugeMetricFamily

        for name, (documentation, value) in gauges.items():
            family = GaugeMetricFamily(name, documentation, labels=["queue"])
            family.add_metric([self._queue_name], value)
            yield family

    def _histogram(self, name: str, documentation: str, times: Times) -> Any:
        from prometheus_client.core import HistogramMetricFamily
        from prometheus_client.utils import floatToGoString

        family = HistogramMetricFamily(name, documentation, labels=["queue"])
        buckets = zip(map(floatToGoString, BOUNDS), accumulate(times.counts), strict=True)
        family.add_metric([self._queue_name], list(buckets), times.seconds)
        return family


class _Together:
    """A worker's metrics and those of the application's registry."""

    def __init__(self, *collectors: Any) -> None:
        self._collectors = collectors

    def collect(self) -> Iterator[Any]:
        for collector in self._collectors:
            yield from collector.collect()


@contextmanager
def serving_worker(host: str, port: int, settings: Settings, measured: Measured) -> Iterator[str]:
    """Serve a worker's metrics and probes during a block; yield the URL.

    Includes the handlers' own prometheus_client metrics if they run in this process. Raises
    WorkerFailed if the address is unavailable.
    """
    from prometheus_client import REGISTRY

    collector = WorkerCollector(",".join(settings.queue_names), measured)
    registry = collector if settings.processes else _Together(collector, REGISTRY)
    pages: Mapping[str, Page] = {
        "/metrics": metrics_page(registry),
        # If one thread of the worker ends, all do, and the server with them.
        LIVE: lambda _accept: probe_answer(""),
        "/ready": lambda _accept: probe_answer(measured.measures().why_not_ready),
    }
    with ExitStack() as stack:
        try:
            address = stack.enter_context(serving(host, port, pages))
        except OSError as error:
            raise WorkerFailed(f"cannot serve metrics at {host}:{port}: {error}") from error
        yield address
