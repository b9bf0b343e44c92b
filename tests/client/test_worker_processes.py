"""Workers as processes: signals, kills, and a parent that restarts its children."""

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
    """Return a function that starts a worker program in a process group of its own."""
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
    """Return the messages that each process has handled, by process id."""
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
def test_the_first_signal_finishes_the_message_releases_the_rest_and_exits_with_0(
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
def test_the_second_signal_stops_at_once_and_nothing_is_lost(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
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
def test_a_worker_killed_in_the_middle_loses_nothing(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    ids = queue.fill(30)
    killed = start("die_once", batch_size=10)
    assert killed.wait(30) == -signal.SIGKILL
    assert stats_of(start("die_once", drain=True))["processed"] == len(ids)
    assert sorted(set(all_handled(tmp_path))) == ids
    assert left(queue) == (0, 0, 0)


@pytest.mark.promise("P02")
def test_process_of_a_handler_that_hangs_is_replaced(
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
def test_a_dead_child_is_restarted_and_the_rest_goes_on(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    ids = queue.fill(50)
    stats = stats_of(start("die_once", processes=2, drain=True, batch_size=5))
    assert stats["processed"] == 50
    assert sorted(set(all_handled(tmp_path))) == ids
    assert left(queue) == (0, 0, 0)


@pytest.mark.promise("P08")
def test_a_handler_in_a_child_learns_in_a_stalled_network_that_its_lease_is_over(
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
def test_a_parent_whose_children_keep_dying_gives_up(queue: WorkerQueue, start: Start) -> None:
    queue.alter_queue(max_attempts=100)
    queue.fill(50)
    worker = start("die", processes=1, batch_size=1)
    _, errors = worker.communicate(timeout=60)
    assert worker.returncode == 1
    assert "ended 5 times in a row" in errors


def test_what_makes_no_sense_in_a_child_ends_the_parent_at_once(
    queue: WorkerQueue, start: Start
) -> None:
    assert queue.client.version()
    worker = start("no_such_handler", processes=2)
    _, errors = worker.communicate(timeout=30)
    assert worker.returncode == 1
    assert "failed: cannot find handler" in errors


def test_the_parent_says_what_has_killed_a_child_and_the_child_says_where(
    queue: WorkerQueue, start: Start
) -> None:
    queue.fill(1)
    worker = start("interrupt", processes=2)
    _, errors = worker.communicate(timeout=40)
    assert worker.returncode == 1
    assert "failed: KeyboardInterrupt: enough" in errors
    assert "the worker has failed" in errors
    assert "in interrupt" in errors
    assert left(queue) == (1, 0, 0)


def test_a_child_logs_as_its_parent_does(queue: WorkerQueue, start: Start, tmp_path: Path) -> None:
    queue.fill(2)
    worker = start("fail_once", processes=1, drain=True)
    output, errors = worker.communicate(timeout=40)
    assert json.loads(output)["processed"] == 2
    (child,) = handled(tmp_path)
    assert f"{child} rowq.worker message 1: the handler raised" in errors.replace(
        f"message {min(all_handled(tmp_path))}", "message 1"
    )


@pytest.mark.promise("P02")
def test_a_child_that_dies_while_the_database_is_away_comes_back_with_it(
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


def test_a_restart_that_the_system_refuses_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_child_is_asked_to_stop_once() -> None:
    context = multiprocessing.get_context("spawn")
    settings = rowq.Worker("postgresql://host/db", "q", print, processes=1)._settings
    child = WorkerProcess(context, settings)
    ours, theirs = context.Pipe()
    child._pipe = ours
    for _ in range(1000):
        child.ask_to_stop()
    assert theirs.recv() == "stop"
    assert not theirs.poll()


def test_a_process_that_a_handler_forks_ends_by_its_first_signal(
    queue: WorkerQueue, start: Start, tmp_path: Path
) -> None:
    queue.alter_queue(lease_seconds=60)
    ids = queue.fill(1)
    assert stats_of(start("terminate_a_fork", drain=True))["processed"] == 1
    assert all_handled(tmp_path) == ids


@pytest.mark.parametrize("to", ["parent", "group"])
def test_a_signal_to_the_parent_or_to_all_stops_every_child_gracefully(
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
    # A child may take what another has given back before the signal reaches it.
    assert stats["processed"] + stats["released"] >= 10
    assert left(queue) == (10 - stats["processed"], 0, 0)
    assert len(all_handled(tmp_path)) == stats["processed"]


@pytest.mark.chaos
def test_children_of_a_killed_parent_finish_their_message_and_end(
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
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
