"""Programs of `rowq work --exec` do not outlive their lease or their worker."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rowq.tools.command.programs import Programs
from tests.cli.working import ROOT, is_running, lines
from tests.engines.base import wait_until

# Runs a program that has a file.
STARTER = """
import os, sys, tempfile
from rowq.tools.command.programs import Programs

with Programs(grace_seconds=0.5) as programs, tempfile.TemporaryFile() as file:
    with programs.new_file(b"facts") as path:
        if sys.argv[2] == "unknown to the guard":
            programs._update_guard = lambda: None
        variables = {b"PATH": b"/bin:/usr/bin", b"ROWQ_MESSAGE_FILE": os.fsencode(path)}
        program = programs.start(["sh", "-c", sys.argv[1]], variables, file, file)
        print(path, flush=True)
        programs.wait(program, lambda: False)
"""
TWO = "sleep 60 & echo $$ > pids; echo $! >> pids; wait"
TWO_THAT_IGNORE = f"trap '' TERM; {TWO}"


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs(grace_seconds=0.2) as entered:
        yield entered


def run(programs: Programs, line: str, is_lost: Callable[[], bool] = lambda: False) -> int:
    """Run a line of shell to its end."""
    with ExitStack() as files:
        body, errors = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        program = programs.start(["sh", "-c", line], os.environb, body, errors)
        return programs.wait(program, is_lost)


@pytest.fixture(params=["with a pidfd", "without"])
def _ways_to_wait(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("_ways_to_wait")
@pytest.mark.parametrize(
    ("line", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", -9), ("sleep 0.5", 0)]
)
def test_exit_status_is_returned(programs: Programs, line: str, status: int) -> None:
    assert run(programs, line) == status


@pytest.mark.usefixtures("_ways_to_wait")
def test_program_can_clean_up_after_lost_lease(programs: Programs, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    line = f"trap 'echo cleaned > {tmp_path}/log; exit 3' TERM; touch {begun}; sleep 60 & wait"
    assert run(programs, line, begun.exists) == 3
    assert lines(tmp_path / "log") == ["cleaned"]


@pytest.mark.usefixtures("_ways_to_wait")
@pytest.mark.parametrize("line", [TWO, TWO_THAT_IGNORE], ids=["obeys", "ignores SIGTERM"])
def test_lost_lease_ends_all_processes_of_program(
    programs: Programs, tmp_path: Path, line: str
) -> None:
    pids = tmp_path / "pids"
    run(programs, f"cd {tmp_path}; {line}", lambda: len(lines(pids)) == 2)
    wait_until(lambda: not any(is_running(int(pid)) for pid in lines(pids)), "all has ended")


def test_children_of_finished_program_continue(programs: Programs, tmp_path: Path) -> None:
    assert run(programs, f"sleep 60 & echo $! > {tmp_path}/pid") == 0
    (pid,) = lines(tmp_path / "pid")
    programs.__exit__(None, None, None)
    assert is_running(int(pid))
    os.kill(int(pid), signal.SIGKILL)


@pytest.mark.chaos
@pytest.mark.parametrize("line", [TWO, TWO_THAT_IGNORE], ids=["obeys", "ignores SIGTERM"])
@pytest.mark.parametrize("guard", ["known to the guard", "unknown to the guard"])
def test_guard_cleans_up_after_killed_worker(tmp_path: Path, line: str, guard: str) -> None:
    """The worker may be killed before the guard knows a new program."""
    if guard == "unknown to the guard" and sys.platform != "linux":
        pytest.skip("needs /proc; to run it: Linux")
    command = [sys.executable, "-c", STARTER, f"cd {tmp_path}; {line}", guard]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"facts", 0o600)
        wait_until(lambda: len(lines(tmp_path / "pids")) == 2, "the program runs")
        process.kill()
    pids = [int(pid) for pid in lines(tmp_path / "pids")]
    wait_until(lambda: not any(map(is_running, pids)), "the program has ended")
    wait_until(lambda: not path.exists(), "its file is gone")


@pytest.mark.chaos
def test_killed_guard_is_replaced(programs: Programs, tmp_path: Path) -> None:
    first = programs._guard
    first.kill()
    first.wait()
    assert run(programs, "exit 4") == 4
    assert is_running(programs._guard.pid)
    assert programs._guard.pid != first.pid
    assert not list(tmp_path.iterdir())
