"""The queues of a database as a collector for a registry of prometheus_client."""

from collections.abc import Iterator
from typing import Any

from rowq.tools.metrics.queues import queue_metrics
from rowq.tools.metrics.sampling import Sample, Samples, Source
from rowq.worker.metrics.library import load_library


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
