"""rowq stats: counts, rates and workers."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import rowq
from tests.cli.conftest import Run, run_app
from tests.cli.working import PROGRAM
from tests.engines.base import Connection, Server
from tests.stored_times import pass_seconds
from tests.web.accounts import account

IDLE: dict[str, Any] = {
    "worker_name": "idle 8",
    "host_name": "shop.example",
    "worker_version": "rowq 0.1.0",
    "threads": 4,
}


@pytest.fixture
def consumer_url(server: Server, connection: Connection, database_url: str) -> Iterator[str]:
    """Return the URL of an account that can read counts, but not list workers."""
    with account(server, connection, database_url, "rowq_consumer") as url:
        yield url


def test_stats_marks_limited_counts(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(5)])
    assert run("stats", made, "--json").row["ready"] == 5
    assert made in run("stats").out
    assert "3+" in run("stats", made, "--max-count", 3).out


def test_stats_shows_report_of_idle_worker(
    run: Run, queue: rowq.Queue, connection: Connection, made: str
) -> None:
    queue.report_worker(made, "w", completed=100, failed=10, **IDLE)
    pass_seconds(connection, made, 1000)
    queue.report_worker(made, "w", completed=2100, failed=1010, **IDLE)
    row = run("stats", made, "--json").row
    assert 1.5 < row["out_per_second"] <= 2
    assert 0.75 < row["failed_per_second"] <= 1
    # A single sample has no rate of arrivals.
    assert "in_per_second" not in row
    (worker,) = row["workers"]
    assert {name: worker[name] for name in IDLE} == IDLE
    assert worker["last_seen_seconds"] < 30
    shown = run("stats", made).out
    for words in (*map(str, IDLE.values()), "out/s", "failed/s", "last seen seconds"):
        assert words in shown
    assert "in/s" not in shown


def test_stats_ignores_rates_of_killed_worker(
    run: Run, queue: rowq.Queue, connection: Connection, made: str
) -> None:
    queue.report_worker(made, "w", **IDLE)
    pass_seconds(connection, made, 60)
    row = run("stats", made, "--json").row
    assert (row["out_per_second"], len(row["workers"])) == (None, 1)
    assert "idle 8" in run("stats", made).out


def test_stats_reports_missing_workers(run: Run, made: str) -> None:
    row = run("stats", made, "--json").row
    assert (row["out_per_second"], row["failed_per_second"], row["workers"]) == (None, None, [])
    assert "no worker reports" in run("stats", made).out


def test_stats_shows_counts_without_right_to_list_workers(
    consumer_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.report_worker(made, "w", **IDLE)
    row = run_app("stats", made, "--json", url=consumer_url).row
    assert (row["ready"], row["workers"], row["out_per_second"]) == (0, None, None)
    shown = run_app("stats", made, url=consumer_url)
    assert (shown.code, made in shown.out) == (0, True)
    for words in ("shop.example", "no worker reports", "out/s"):
        assert words not in shown.out


def test_stats_lists_workers_per_stripe(run: Run, queue: rowq.Queue, queue_name: str) -> None:
    assert run("queue", "create", queue_name, "--stripes", 2).code == 0
    queue.report_worker(f"{queue_name}/1", "w", **IDLE)
    rows = run("stats", queue_name, "--stripes", 2, "--json").rows
    assert [len(row["workers"]) for row in rows] == [0, 1]
    shown = run("stats", queue_name, "--stripes", 2).out
    assert "shop.example" in shown


@pytest.mark.slow("waits for time limits")
def test_stats_watch_refreshes_until_interrupt(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.report_worker(made, "w", **IDLE)
    with subprocess.Popen(
        [PROGRAM, "stats", made, "--watch", "--interval", "0.1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ROWQ_URL": database_url},
    ) as process:
        assert process.stdout is not None
        samples = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert [sample["queue_name"] for sample in samples] == [made] * 3
    assert [sample["in_per_second"] for sample in samples] == [None, 0, 0]
