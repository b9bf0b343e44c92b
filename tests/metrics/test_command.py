"""rowq metrics, with --once and --listen."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.conftest import Run
from tests.cli.working import PROGRAM, worker
from tests.client.proxy import relay
from tests.engines.base import wait_until
from tests.metrics.promtool import promtool
from tests.metrics.reading import Metrics, fetched, free_port, get


@contextmanager
def served(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `rowq metrics` on a free port during a block; yield process and address."""
    with subprocess.Popen(
        [PROGRAM, "metrics", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ROWQ_URL": url},
    ) as process:
        try:
            assert process.stderr
            address, _, rest = process.stderr.readline().partition("/metrics; ")
            assert (address.rpartition(":")[0], rest) == ("http://127.0.0.1", "Ctrl-C to stop\n")
            yield process, address
        finally:
            process.kill()


def test_once_prints_metrics(run: Run, made: str) -> None:
    ran = run("metrics", "--once")
    metrics = Metrics(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert metrics.value("rowq_up") == 1
    assert metrics.value("rowq_messages", queue=made, state="ready") == 0


@pytest.mark.usefixtures("made")
def test_what_it_prints_passes_promtool_s_check(run: Run) -> None:
    checked = promtool("check", "metrics", given=run("metrics", "--once").out)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_once_sets_exit_status_3_if_database_is_unreachable(run_without_database: Run) -> None:
    secret = "p@ss word-of-mine"
    ran = run_without_database(
        "metrics", "--once", url=f"postgresql://me:{quote(secret)}@127.0.0.1:1/x"
    )
    assert ran.code == 3
    assert Metrics(ran.out).value("rowq_up") == 0
    assert ran.err.startswith("rowq: ")
    for shown in (secret, quote(secret)):
        assert shown not in ran.out + ran.err


def test_metrics_without_installation_suggest_migrate(
    run_without_database: Run, empty_database: str
) -> None:
    ran = run_without_database("metrics", "--once", url=empty_database)
    assert ran.code == 7
    assert Metrics(ran.out).value("rowq_up") == 0
    assert ran.err.endswith("install it with: rowq migrate\n")


@pytest.mark.parametrize("arguments", [[], ["--once", "--listen", "127.0.0.1:0"]])
def test_metrics_require_once_or_listen(run_without_database: Run, arguments: list[str]) -> None:
    ran = run_without_database("metrics", *arguments, url="postgresql://nowhere/x")
    assert ran.code == 2
    assert "exactly one of --listen and --once is required" in ran.err


@pytest.mark.parametrize(
    "command", [["metrics", "--once"], ["work", "MADE", "--exec", "true", "--metrics-port", "0"]]
)
def test_it_says_what_to_install(
    run: Run, made: str, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    ran = run(*[made if word == "MADE" else word for word in command])
    assert (ran.code, ran.out) == (7, "")
    assert ran.err == "rowq: metrics need prometheus-client: pip install 'rowq[metrics]'\n"


@pytest.mark.parametrize("address", ["9400", "localhost", ":9400", "host:x", "host:70000"])
def test_listen_requires_host_and_port(run_without_database: Run, address: str) -> None:
    ran = run_without_database("metrics", "--listen", address, url="postgresql://nowhere/x")
    assert ran.code == 2
    assert "HOST:PORT" in ran.err


@pytest.mark.slow("waits for time limits")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_metrics_are_served_until_signal(
    database_url: str, made: str, number: signal.Signals
) -> None:
    with served(database_url) as (process, address):
        assert fetched(address).value("rowq_queue_paused", queue=made) == 0
        assert get(f"{address}/live") == (200, "ok\n")
        assert get(f"{address}/ready") == (200, "ok\n")
        assert get(f"{address}/other") == (404, "not found; pages: /metrics, /live, /ready\n")
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr
        # psycopg warns about the unknown time zone of the test servers.
        assert [line for line in process.stderr if "PostgreSQL timezone" not in line] == []


@pytest.mark.slow("waits for time limits")
def test_metrics_are_served_while_database_is_unreachable(database_url: str) -> None:
    with relay(database_url) as way:
        way.refuse(connections=True)
        with served(way.url) as (process, address):
            metrics = fetched(address)
            assert metrics.value("rowq_up") == 0
            assert get(f"{address}/live") == (200, "ok\n")
            assert get(f"{address}/ready") == (
                503,
                "cannot read the database; see the log\n",
            )
            way.refuse(connections=False)
            wait_until(lambda: get(f"{address}/ready")[0] == 200, "it is ready again", seconds=20)
            assert fetched(address).value("rowq_up") == 1
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert process.stderr
            log = process.stderr.read()
            assert log.count("cannot read the queues: ") == 1
            assert log.count("reading the queues works again") == 1


@pytest.mark.slow("waits for time limits")
def test_work_command_serves_worker_metrics(
    run: Run, database_url: str, made: str, tmp_path: Path
) -> None:
    port = free_port()
    run("enqueue", made, "1")
    arguments = ("--exec", f"touch {tmp_path / 'done'}", "--metrics-port", port)
    with worker(database_url, made, *arguments) as process:
        wait_until((tmp_path / "done").exists, "the program has run", seconds=30)
        address = f"http://127.0.0.1:{port}"

        def completed() -> float | None:
            metrics = fetched(address)
            return metrics.value("rowq_worker_messages_total", queue=made, outcome="completed")

        wait_until(lambda: completed() == 1, "the worker counts it")
        assert get(f"{address}/ready") == (200, "ok\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_used_port_is_reported(run: Run, database_url: str) -> None:
    with served(database_url) as (_, address):
        ran = run("metrics", "--listen", address.removeprefix("http://"))
    assert ran.code == 6
    assert "Address already in use" in ran.err
