"""The command metrics."""

import logging
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from rowq.tools.console.database import check_installed
from rowq.tools.console.options import Url
from rowq.tools.console.streams import say
from rowq.tools.metrics import Collector
from rowq.tools.metrics.queues import queue_metrics
from rowq.tools.metrics.sampling import Sample
from rowq.tools.terminal import log_to_stderr, printable_lines
from rowq.worker.context import StopSignals
from rowq.worker.metrics.server import LIVE, metrics_page, probe_answer, serving

_TICK_SECONDS = 0.2


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Operation")(metrics)


def metrics(
    url: Url,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address on which to serve /metrics, /live and /ready.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print the metrics once, in the Prometheus format.")
    ] = False,
    max_count: Annotated[
        int, typer.Option(min=1, help="Stop counting the messages of a state at this number.")
    ] = 10_000,
) -> None:
    """Export queue metrics to Prometheus.

    Metrics: message counts, ages and health checks. The role rowq_monitor suffices. The database is
    sampled at most once in 5 seconds. If that fails, rowq_up is 0, the queue metrics are missing,
    and the reason is logged to standard error. /live succeeds while the program runs, /ready while
    sampling succeeds.
    """
    if (listen is None) is not once:
        raise typer.BadParameter("exactly one of --listen and --once is required")
    collector = Collector(url, max_count=max_count)
    if listen is None:
        _print(collector, url)
    else:
        _serve(collector, *_address(listen))


def _print(collector: Collector, url: str) -> None:
    """Print the metrics; raise the error of a failed sample."""
    from prometheus_client import CollectorRegistry, generate_latest

    logging.getLogger("rowq.metrics").setLevel(logging.ERROR)
    registry = CollectorRegistry()
    sample = collector.sample()
    registry.register(_SampleCollector(sample))
    page = generate_latest(registry).decode()
    # Queue names may contain control characters: escape them on a terminal.
    sys.stdout.write(printable_lines(page) if sys.stdout.isatty() else page)
    if sample.error:
        check_installed(url, sample.error)
        raise sample.error


class _SampleCollector:
    """The metrics of one sample, for a registry."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def collect(self) -> Iterator[Any]:
        """Yield the metric families."""
        return queue_metrics(self._sample)


def _serve(collector: Collector, host: str, port: int) -> None:
    from prometheus_client import CollectorRegistry

    log_to_stderr()
    registry = CollectorRegistry()
    registry.register(collector)

    def ready() -> str:
        # The error itself may hold details that the client must not see.
        failed = collector.sample().error is not None
        return "cannot read the database; see the log" if failed else ""

    pages = {
        "/metrics": metrics_page(registry),
        LIVE: lambda _accept: probe_answer(""),
        "/ready": lambda _accept: probe_answer(ready()),
    }
    with serving(host, port, pages) as address, StopSignals() as signals:
        say(f"{address}/metrics; Ctrl-C to stop", err=True)
        while not signals.asked:
            time.sleep(_TICK_SECONDS)


def _address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [HOST]:PORT."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isdecimal() and int(port) <= 65535):
        raise typer.BadParameter(
            f"--listen must be HOST:PORT, such as 127.0.0.1:9400, got {text!r}"
        )
    return host, int(port)
