"""Prometheus scrapes a worker; every expression of the dashboard finds a series."""

import math
import time
from pathlib import Path

import pytest

from rowq import NewMessage
from tests.cli.working import worker
from tests.engines.base import Server
from tests.helpers.worker_queue import MakeQueue
from tests.metrics.alerts import rules
from tests.metrics.dashboard import MONITORING, expressions
from tests.metrics.prometheus import Prometheus, scraping
from tests.metrics.reading import free_port
from tests.metrics.test_command import served

pytestmark = pytest.mark.slow("a Prometheus that scrapes for a while")

SECONDS = 20


def test_every_dashboard_expression_finds_a_series(
    server: Server, make_queue: MakeQueue, tmp_path: Path
) -> None:
    queue = make_queue(lease_seconds=1, backoff_base_seconds=1, max_attempts=2)
    port = free_port()
    queue.enqueue("held by nobody's handler")
    queue.client.dequeue_fast(queue.name, lease_seconds=600)
    arguments = ("tests.metrics.handlers:unreliable", "--metrics-port", port, "--batch-size", 5)
    with (
        served(queue.url) as (_, address),
        worker(queue.url, queue.name, *arguments),
        scraping(
            {"rowq": address.removeprefix("http://"), "rowq_workers": f"127.0.0.1:{port}"},
            MONITORING / "alerts.yml",
            tmp_path,
        ) as prometheus,
    ):
        for round_number in range(SECONDS):
            queue.enqueue_batch([NewMessage(data=round_number * 20 + n) for n in range(20)])
            time.sleep(1)
        end = time.monotonic() + 30
        while (lacking := without_series(prometheus, queue.name)) and time.monotonic() < end:
            time.sleep(1)
        assert lacking == [], server.name
        assert {target["health"] for target in prometheus.targets()} == {"up"}
        found = prometheus.rules()
        assert {rule["name"] for rule in found} == {rule["alert"] for rule in rules()}
        assert {(rule["health"], rule.get("lastError", "")) for rule in found} == {("ok", "")}
        (dead,) = [rule for rule in found if rule["name"] == "RowqDeadMessages"]
        assert dead["state"] == "firing"
        assert values(prometheus, "sum(rate(rowq_worker_messages_total[10s]))", queue.name)[0] > 1


def without_series(prometheus: Prometheus, queue_name: str) -> list[tuple[str, str]]:
    """Return the panels and expressions of the dashboard without a series."""
    return [
        (title, expression)
        for title, expression in expressions()
        if not values(prometheus, expression, queue_name)
    ]


def values(prometheus: Prometheus, expression: str, queue_name: str) -> list[float]:
    """Return the values, except NaN, of the series of an expression."""
    chosen = expression.replace("$queue", queue_name).replace("$__rate_interval", "10s")
    assert "$" not in chosen
    found = [float(series["value"][1]) for series in prometheus.query(chosen)]
    return [value for value in found if not math.isnan(value)]
