"""Worker processes: signals, kills, restarts."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

import rowq
from rowq.worker.processes import WorkerProcess
from tests.client.proxy import relay
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

pytestmark = pytest.mark.slow("starts and kills processes")

ROOT = Path(__file__).parents[2]

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=1, backoff_base_seconds=0)


@pytest.fixture
def start(database_url: str, queue_name: str, tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a worker program in its own process group."""
    processes: list[subprocess.Popen[str]] = []

    def start_worker(
        handler: str, url: str = database_url, **options: Any
    ) -> "subprocess.Popen[str]":
        arguments = [url, queue_name, f"tests.client.handlers:{handler}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.client.worker_program", *arguments, json.dumps(options)],
            cwd=ROOT,
            env={**os.environ, "ROWQ_TEST_DIRECTORY": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start_worker
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def handled(directory: Path) -> dict[int, list[int]]:
    """Return the handled messages by process id."""
    return {
        int(path.name.removeprefix("handled-")): [int(line) for line in path.open()]
        for path in directory.glob("handled-*")
    }


def all_handled(directory: Path) -> list[int]:
    return sorted(message_id for ids in handled(directory).values() for message_id in ids)


def left(queue: WorkerQueue) -> tuple[int, int, int]:
    stats = queue.queue_stats()[0]
    return stats.ready, stats.delayed, stats.leased


def stats_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Wait for a clean end and return the printed stats."""
    output, errors = process.communicate(timeout=40)
    assert process.returncode == 0, errors
    return dict(json.loads(output))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_first_signal_finishes_and_releases(
    queue: WorkerQueue, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    ids = queue.fill(5)
    worker = start("note_then_wait")
    wait_until(lambda: bool(all_handled(tmp_path)), "a message is being handled", 20)
    worker.send_signal(number)
    (tmp_path / "go").touch()
    stats = stats_of(worker)
    assert stats["processed"] + stats["released"] == 5
    assert all_handled(tmp_path) == ids[: stats["processed"]]
    assert left(queue) == (stats["released"], 0, 0)


@pytest.mark.promise("P02", "P09")
def test_second_signal_stops_at_once(queue: WorkerQueue, start: Start, tmp_path: Path) -> None:
    ids = queue.fill(3)
    worker = start("note_then_wait")
    wait_until(lambda: bool(all_handled(tmp_path)), "a message is being handled", 20)
    worker.send_signal(signal.SIGTERM)
    while worker.poll() is None:
        worker.send_signal(signal.SIGTERM)
    assert worker.returncode == 128 + signal.SIGTERM
    (tmp_path / "go").touch()
    assert stats_of(start("note_then_wait", drain=True))["processed"] == len(ids)


@pytest.mark.chaos
@pytest.mark.promise("P02", "P09")
def test_killed_worker_loses_nothing(queue: WorkerQueue, start: Start, tmp_path: Path) -> None:
    ids = queue.fill(30)
    killed = start("die_once", batch_size=10)
    assert killed.wait(30) == -signal.SIGKILL
    assert stats_of(start("die_once", drain=True))["processed"] == len(ids)
    assert sorted(set(all_handled(tmp_path))) == ids
    assert left(queue) == (0, 0, 0)


@pytest.mark.promise("P02")
def test_process_of_a_hanging_handler_is_replaced(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    ids = queue.fill(3)
    options = {"timeout_seconds": 0.5, "processes": 1, "batch_size": 3, "drain": True}
    worker = start("hang_once", **options)
    stats = stats_of(worker)
    assert (stats["processed"], stats["retried"], stats["released"]) == (3, 1, 2)
    assert sorted(all_handled(tmp_path)) == [ids[0], *ids]
    assert len(handled(tmp_path)) == 2
    assert left(queue) == (0, 0, 0)


@pytest.mark.chaos
def test_dead_child_is_restarted(queue: WorkerQueue, start: Start, tmp_path: Path) -> None:
    ids = queue.fill(50)
    stats = stats_of(start("die_once", processes=2, drain=True, batch_size=5))
    assert stats["processed"] == 50
    assert sorted(set(all_handled(tmp_path))) == ids
    assert left(queue) == (0, 0, 0)


@pytest.mark.promise("P08")
def test_child_handler_sees_lost_lease_in_a_stalled_network(
    database_url: str, queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    queue.fill(1)
    with relay(database_url) as between:
        worker = start("leave_off_when_lost", between.url, processes=1, maintain_seconds=0)
        wait_until(lambda: bool(all_handled(tmp_path)), "the message is being handled", 30)
        between.stall()
        wait_until((tmp_path / "lost").exists, "the handler knows that the lease is over", 20)
        between.go_on()
        worker.send_signal(signal.SIGTERM)
        stats = stats_of(worker)
    assert (stats["processed"], stats["stale"]) == (0, 1)
    assert left(queue) == (0, 0, 1)


@pytest.mark.chaos
def test_parent_fails_if_children_keep_dying(queue: WorkerQueue, start: Start) -> None:
    queue.alter_queue(max_attempts=100)
    queue.fill(50)
    worker = start("die", processes=1, batch_size=1)
    _, errors = worker.communicate(timeout=60)
    assert worker.returncode == 1
    assert "ended 5 times in a row" in errors


def test_child_that_cannot_work_ends_the_parent(queue: WorkerQueue, start: Start) -> None:
    assert queue.client.version()
    worker = start("no_such_handler", processes=2)
    _, errors = worker.communicate(timeout=30)
    assert worker.returncode == 1
    assert "failed: cannot find handler" in errors


def test_parent_logs_the_error_of_a_child(queue: WorkerQueue, start: Start) -> None:
    queue.fill(1)
    worker = start("interrupt", processes=2)
    _, errors = worker.communicate(timeout=40)
    assert worker.returncode == 1
    assert "failed: KeyboardInterrupt: enough" in errors
    assert "the worker has failed" in errors
    assert "in interrupt" in errors
    assert left(queue) == (1, 0, 0)


def test_child_uses_the_parents_logging(queue: WorkerQueue, start: Start, tmp_path: Path) -> None:
    queue.fill(2)
    worker = start("fail_once", processes=1, drain=True)
    output, errors = worker.communicate(timeout=40)
    assert json.loads(output)["processed"] == 2
    (child,) = handled(tmp_path)
    assert f"{child} rowq.worker message 1: the handler raised" in errors.replace(
        f"message {min(all_handled(tmp_path))}", "message 1"
    )


@pytest.mark.promise("P02")
def test_child_restarts_after_an_outage(
    database_url: str, queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    ids = queue.fill(20)
    with relay(database_url) as between:
        worker = start("die_when_told", between.url, processes=1, batch_size=2, drain=True)
        wait_until(lambda: bool(handled(tmp_path)), "messages are handled", 30)
        between.refuse(connections=True)
        between.cut()
        (tmp_path / "die").touch()
        wait_until((tmp_path / "died").exists, "the child dies", 20)
        refused = between.refused
        wait_until(lambda: between.refused > refused + 2, "another one tries to connect", 30)
        between.refuse(connections=False)
        stats = stats_of(worker)
    assert stats["processed"] + stats["stale"] >= 20
    assert sorted(set(all_handled(tmp_path))) == ids
    assert left(queue) == (0, 0, 0)


def test_refused_restart_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    settings = rowq.Worker("postgresql://host/db", "q", print, processes=1)._settings
    child = WorkerProcess(context, settings)
    starts: list[int] = []

    def refuse(_process: object) -> None:
        starts.append(1)
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    descriptors = len(list(Path("/dev/fd").iterdir()))
    while len(starts) < 3:
        child.supervise(stopping=False)
        child._restart_at = 0
    assert len(list(Path("/dev/fd").iterdir())) == descriptors
    assert not child.done


def test_child_gets_one_stop_request() -> None:
    context = multiprocessing.get_context("spawn")
    settings = rowq.Worker("postgresql://host/db", "q", print, processes=1)._settings
    child = WorkerProcess(context, settings)
    ours, theirs = context.Pipe()
    child._pipe = ours
    for _ in range(1000):
        child.ask_to_stop()
    assert theirs.recv() == "stop"
    assert not theirs.poll()


def test_forked_process_ends_by_its_first_signal(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    queue.alter_queue(lease_seconds=60)
    ids = queue.fill(1)
    assert stats_of(start("terminate_a_fork", drain=True))["processed"] == 1
    assert all_handled(tmp_path) == ids


@pytest.mark.parametrize("to", ["parent", "group"])
def test_signal_stops_every_child_gracefully(
    queue: WorkerQueue, start: Start, tmp_path: Path, to: str
) -> None:
    queue.alter_queue(lease_seconds=60)
    queue.fill(10)
    worker = start("note_then_wait", processes=2, batch_size=5)
    wait_until(lambda: len(handled(tmp_path)) == 2, "both children handle a message", 30)
    if to == "parent":
        worker.send_signal(signal.SIGTERM)
    else:
        os.killpg(worker.pid, signal.SIGTERM)
    (tmp_path / "go").touch()
    stats = stats_of(worker)
    # A child may lease what another has released before it gets the signal.
    assert stats["processed"] + stats["released"] >= 10
    assert left(queue) == (10 - stats["processed"], 0, 0)
    assert len(all_handled(tmp_path)) == stats["processed"]


@pytest.mark.chaos
def test_children_of_a_killed_parent_finish_and_end(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    queue.alter_queue(lease_seconds=60)
    queue.fill(10)
    worker = start("note_then_wait", processes=2, batch_size=5)
    wait_until(lambda: len(handled(tmp_path)) == 2, "both children handle a message", 30)
    children = list(handled(tmp_path))
    worker.kill()
    worker.wait()
    (tmp_path / "go").touch()
    wait_until(lambda: not any(is_alive(child) for child in children), "the children end", 20)
    stats = queue.queue_stats()[0]
    assert stats.leased == 0
    assert stats.ready == 10 - len(all_handled(tmp_path))


def is_alive(process_id: int) -> bool:
    """Return whether the process runs and is not a zombie."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
