"""metrics: the state of the queues for Prometheus."""

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
            help="Serve /metrics, /live and /ready there until Ctrl-C or SIGTERM.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print the metrics once, as Prometheus reads them.")
    ] = False,
    max_count: Annotated[
        int, typer.Option(min=1, help="Count no more messages of a state than this.")
    ] = 10_000,
) -> None:
    """Tell Prometheus of the queues: how many messages, how old, what rowq health says.

    It looks at the database at most once in five seconds, however often it is asked, as
    rowq_monitor may. When a look fails, rowq_up is 0 and nothing is said of the queues; the log on
    standard error says why, and with --once the exit status. /live answers while the program runs,
    /ready while its looks succeed.
    """
    if (listen is None) is not once:
        raise typer.BadParameter("give either --listen HOST:PORT or --once")
    collector = Collector(url, max_count=max_count)
    if listen is None:
        _print(collector, url)
    else:
        _serve(collector, *_address(listen))


def _print(collector: Collector, url: str) -> None:
    """Print the metrics; raises why the database could not be looked at."""
    from prometheus_client import CollectorRegistry, generate_latest

    logging.getLogger("rowq.metrics").setLevel(logging.ERROR)
    registry = CollectorRegistry()
    look = collector.look()
    registry.register(_Found(look))
    page = generate_latest(registry).decode()
    # A program gets the names of queues as they are, a terminal without commands in them.
    sys.stdout.write(printable_lines(page) if sys.stdout.isatty() else page)
    if look.error:
        check_installed(url, look.error)
        raise look.error


class _Found:
    """The metrics of one look, for a registry."""

    def __init__(self, look: Sample) -> None:
        self._look = look

    def collect(self) -> Iterator[Any]:
        """Yield the families of metrics."""
        return queue_metrics(self._look)


def _serve(collector: Collector, host: str, port: int) -> None:
    from prometheus_client import CollectorRegistry

    log_to_stderr()
    registry = CollectorRegistry()
    registry.register(collector)

    def ready() -> str:
        # Whoever asks for the page need not be told the rest of the error.
        failed = collector.look().error is not None
        return "the last look at the database failed; the log says why" if failed else ""

    pages = {
        "/metrics": metrics_page(registry),
        LIVE: lambda _accept: probe_answer(""),
        "/ready": lambda _accept: probe_answer(ready()),
    }
    with serving(host, port, pages) as address, StopSignals() as signals:
        say(f"{address}/metrics; Ctrl-C ends", err=True)
        while not signals.asked:
            time.sleep(_TICK_SECONDS)


def _address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [HOST]:PORT."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isdecimal() and int(port) <= 65535):
        raise typer.BadParameter(f"--listen is HOST:PORT, such as 127.0.0.1:9400, got {text!r}")
    return host, int(port)
