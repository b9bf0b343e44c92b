"""Metrics of a worker, and the server that tells them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import Any

from rowq.errors import WorkerFailed
from rowq.worker.context import Settings
from rowq.worker.meter import BOUNDS, Event, Measured, Measures, Times
from rowq.worker.metrics.server import LIVE, Page, metrics_page, serving, told

_OUTCOMES: Mapping[str, str] = {
    "completed": "processed",
    "retried": "retried",
    "dead": "failed",
    "released": "released",
    "stale": "stale",
    "cancelled": "cancelled",
}
"""By outcome, the name of its count in WorkerStats."""
_COUNTED: tuple[tuple[str, str, str, Mapping[str, Event]], ...] = (
    (
        "rowq_worker_polls_total",
        "Dequeues that were answered, by whether they found messages.",
        "result",
        {"found": "found", "empty": "empty"},
    ),
    (
        "rowq_worker_errors_total",
        "Exceptions of handlers that decide nothing, and calls that the database did not do.",
        "kind",
        {"handler": "handler_error", "database": "database_error"},
    ),
    (
        "rowq_worker_leases_total",
        "Leases that were extended, and those that were found lost.",
        "result",
        {"extended": "lease_extended", "lost": "lease_lost"},
    ),
)


class WorkerCollector:
    """The measures of a worker as a collector for a registry of prometheus_client."""

    def __init__(self, queue_name: str, measured: Measured) -> None:
        """Tell of a worker of this queue."""
        self._queue_name = queue_name
        self._measured = measured

    def collect(self) -> Iterator[Any]:
        """Yield the families of metrics; every series is there from the beginning."""
        measures = self._measured.measures()
        yield from self._counters(measures)
        yield from self._gauges(measures)
        yield self._histogram(
            "rowq_worker_handler_seconds",
            "How long calls of the handler took.",
            measures.handled,
        )
        yield self._histogram(
            "rowq_worker_wait_seconds",
            "How long after its enqueue a message was first delivered, its delay included.",
            measures.waited,
        )

    def _counters(self, measures: Measures) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily

        messages = CounterMetricFamily(
            "rowq_worker_messages_total",
            "Messages by what became of them.",
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
                "Whether the worker polls, and extends its leases, as it should.",
                float(not measures.why_not_ready),
            ),
            "rowq_worker_held": ("Messages that the worker has in hand.", measures.held),
            "rowq_worker_oldest_claim_seconds": (
                "For how long the oldest claim is in hand; 0 when there is none.",
                measures.oldest_claim_seconds,
            ),
            "rowq_worker_last_poll_timestamp_seconds": (
                "When a dequeue was last answered; of several processes, the earliest such moment.",
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
    """A worker's metrics, and what the application has in prometheus_client's own registry."""

    def __init__(self, *collectors: Any) -> None:
        self._collectors = collectors

    def collect(self) -> Iterator[Any]:
        for collector in self._collectors:
            yield from collector.collect()


@contextmanager
def serving_worker(host: str, port: int, settings: Settings, measured: Measured) -> Iterator[str]:
    """Serve a worker's metrics and probes for the length of a block; yield the address as a URL.

    What handlers count by prometheus_client is told, too, where they run in this process. Raises
    WorkerFailed when the address cannot be had.
    """
    from prometheus_client import REGISTRY

    collector = WorkerCollector(settings.queue_name, measured)
    registry = collector if settings.processes else _Together(collector, REGISTRY)
    pages: Mapping[str, Page] = {
        "/metrics": metrics_page(registry),
        # It is answered for as long as the worker's threads run: with the first that ends, all do.
        LIVE: lambda _accept: told(""),
        "/ready": lambda _accept: told(measured.measures().why_not_ready),
    }
    with ExitStack() as stack:
        try:
            address = stack.enter_context(serving(host, port, pages))
        except OSError as error:
            raise WorkerFailed(f"metrics cannot be served at {host}:{port}: {error}") from error
        yield address
