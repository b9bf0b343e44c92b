"""rowq work --exec: the outcome of a message by the exit status of its program."""

import shutil
from pathlib import Path

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.cli.working import counts, lines, script, work

pytestmark = pytest.mark.slow("starts a program for each outcome")


@pytest.fixture
def made(queue: rowq.Queue, queue_name: str) -> str:
    """Create a queue whose messages have one attempt, and return its name."""
    queue.create_queue(queue_name, backoff_base_seconds=0, max_attempts=1)
    return queue_name


def fill(queue: rowq.Queue, queue_name: str, count: int) -> None:
    """Enqueue `count` messages."""
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(count)])


def untouched(queue: rowq.Queue, queue_name: str) -> int:
    """Return how many messages are ready without an attempt."""
    return sum(message.attempt == 0 for message in queue.peek(queue_name, max_messages=100))


def test_exit_status_65_makes_message_dead(
    database_url: str, queue: rowq.Queue, queue_name: str, tmp_path: Path
) -> None:
    queue.create_queue(queue_name)
    queue.enqueue(queue_name, 1)
    command = script(tmp_path / "run", "printf '%03000d\\n' 7 >&2; echo it is broken >&2; exit 65")
    done = work(database_url, queue_name, "--exec", command, "--drain", "--json")
    assert (done.returncode, counts(done)) == (0, {"failed": 1})
    (dead,) = queue.list_dead(queue_name)
    assert dead.last_error is not None
    assert dead.last_error.endswith("07\nit is broken")
    assert len(dead.last_error) == 1999


@pytest.mark.parametrize("status", [1, 2, 3, 64, 75, 126, 127, 143, 255])
def test_other_exit_status_retries_until_dead(
    database_url: str, queue: rowq.Queue, queue_name: str, tmp_path: Path, status: int
) -> None:
    queue.create_queue(queue_name, backoff_base_seconds=0, max_attempts=2)
    queue.enqueue(queue_name, 1)
    command = script(tmp_path / "run", f"exit {status}")
    done = work(database_url, queue_name, "--exec", command, "--drain")
    assert done.returncode == 0
    assert "0 completed, 1 retried, 1 failed" in done.stdout
    (dead,) = queue.list_dead(queue_name)
    assert (dead.attempt, dead.last_error) == (2, f"exit status {status}")


def test_status_75_snoozes_with_the_option(
    database_url: str, queue: rowq.Queue, queue_name: str, tmp_path: Path
) -> None:
    queue.create_queue(queue_name, max_attempts=1)
    sent = queue.enqueue(queue_name, 1)
    command = script(tmp_path / "run", "exit 75")
    arguments = ("--exec", command, "--snooze", "900", "--drain", "--json")
    done = work(database_url, queue_name, *arguments)
    assert (done.returncode, counts(done)) == (0, {"snoozed": 1})
    found = queue.get_message(queue_name, sent.message_id)
    assert found is not None
    assert (found.state, found.attempt) == ("delayed", 0)


def test_next_attempt_receives_last_error(
    database_url: str, queue: rowq.Queue, queue_name: str, tmp_path: Path
) -> None:
    queue.create_queue(queue_name, backoff_base_seconds=0)
    queue.enqueue(queue_name, 1)
    command = script(
        tmp_path / "run",
        f'echo "$ROWQ_ATTEMPT $ROWQ_LAST_ERROR" >> "{tmp_path}/log"\n'
        '[ "$ROWQ_ATTEMPT" = 1 ] || exit 0\n'
        "echo not yet >&2; exit 75\n",
    )
    done = work(database_url, queue_name, "--exec", command, "--drain", "--json")
    assert (done.returncode, counts(done)) == (0, {"retried": 1, "processed": 1})
    assert lines(tmp_path / "log") == ["1 ", "2 not yet"]
    assert "not yet" in done.stderr


def test_killed_program_is_retried(
    database_url: str, queue: rowq.Queue, queue_name: str, tmp_path: Path
) -> None:
    queue.create_queue(queue_name, backoff_base_seconds=0)
    queue.enqueue(queue_name, 1)
    command = script(tmp_path / "run", '[ "$ROWQ_ATTEMPT" = 2 ] || kill -KILL $$')
    done = work(database_url, queue_name, "--exec", command, "--drain", "--json")
    assert counts(done) == {"retried": 1, "processed": 1}


@pytest.mark.parametrize("end", ["kill -TERM $$", "exit 143"])
def test_program_ended_with_worker_keeps_its_attempt(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, end: str
) -> None:
    """The worker and its programs are signaled at the same time, as by systemd."""
    queue.enqueue(made, 1)
    command = script(tmp_path / "run", f"kill -TERM $PPID; {end}")
    done = work(database_url, made, "--exec", command, "--json")
    assert (done.returncode, counts(done)) == (0, {"released": 1})
    assert untouched(queue, made) == 1


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("status", "outcome"), [(0, "done"), (65, "dead")])
def test_outcome_ignores_full_or_closed_standard_error(
    database_url: str,
    queue: rowq.Queue,
    made: str,
    tmp_path: Path,
    streams: str,
    status: int,
    outcome: str,
) -> None:
    sent = queue.enqueue(made, 1)
    text = f'echo ran >> "{tmp_path}/log"; echo warn >&2; exit {status}'
    command = script(tmp_path / "run", text)
    done = work(database_url, made, "--exec", command, "--drain", streams=streams)
    found = queue.get_message(made, sent.message_id)
    assert (found.state if found else "done") == outcome
    assert lines(tmp_path / "log") == ["ran"]
    assert done.returncode == (0 if ">&-" not in streams.split() else ExitCode.FAILED)


def test_outcome_ignores_broken_pipe_of_standard_error(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    fill(queue, made, 3)
    command = script(tmp_path / "run", "echo warn >&2")
    streams = f'2>&1 >"{tmp_path}/out" | true; cat "{tmp_path}/out"; exit'
    done = work(database_url, made, "--exec", command, "--drain", "--json", streams=streams)
    assert counts(done) == {"processed": 3}


@pytest.mark.parametrize(
    "command",
    [
        "python3 boook.py",
        "python3 -u ./boook.py one",
        "sh boook",
        "bash boook.sh",
        "perl boook.pl",
        "node boook.js",
        "sh -c no-such-command",
        "sh -c /etc/passwd",
    ],
)
def test_command_that_cannot_run_stops_worker(
    database_url: str, queue: rowq.Queue, made: str, command: str
) -> None:
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"no {command.split()[0]}; to run it: install it")
    fill(queue, made, 5)
    done = work(database_url, made, "--exec", command, "--drain")
    assert done.returncode == ExitCode.FAILED
    assert done.stdout == ("0 completed, 0 retried, 0 failed, 4 released, 0 stale\n")
    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("rowq: the command cannot run: the first 3 messages ended with")
    assert last_line.endswith("; no message was made dead")
    assert untouched(queue, made) == 5


def test_missing_command_of_single_message_does_not_stop_worker(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    for name in ("no-such-command", "no-such-command", "true", "no-such-command", "true"):
        queue.enqueue(made, 1, message_type=name)
    command = """sh -c '"$ROWQ_MESSAGE_TYPE"'"""
    done = work(database_url, made, "--exec", command, "--drain", "--json")
    assert (done.returncode, counts(done)) == (0, {"processed": 2, "failed": 3, "released": 3})


@pytest.mark.parametrize("status", [1, 2])
def test_failing_program_does_not_stop_worker(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, status: int
) -> None:
    fill(queue, made, 4)
    command = script(tmp_path / "run.sh", f"echo run.sh: bad message >&2; exit {status}")
    done = work(database_url, made, "--exec", command, "--drain", "--json")
    assert (done.returncode, counts(done)) == (0, {"failed": 4})


def test_replaced_program_costs_no_attempt(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    fill(queue, made, 3)
    program = tmp_path / "run"
    program.write_text('#!/bin/sh\nmv "$0" "$0.old"\n(sleep 0.6; mv "$0.old" "$0") >&2 &\n')
    program.chmod(0o755)
    done = work(database_url, made, "--exec", program, "--drain", "--json")
    # A claim that waits for the program may be slow; then its other messages are released.
    spent = {name: count for name, count in counts(done).items() if name != "released"}
    assert (done.returncode, spent) == (0, {"processed": 3})
    assert f"in 0.25 s: {program}: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ('rm "$0"', "No such file or directory"),
        ('chmod -x "$0"', "Permission denied"),
        ('printf "\\177ELF" > "$0"', "Exec format error"),
        ('sed -i "1s/.*/#!.no.such/" "$0"', "No such file or directory"),
    ],
)
def test_missing_program_stops_worker_after_retries(
    run: Run,
    queue: rowq.Queue,
    made: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    words: str,
) -> None:
    monkeypatch.setattr("rowq.tools.command.execute._PAUSES", (0.01, 0.01))
    fill(queue, made, 4)
    program = tmp_path / "run"
    program.write_text(f"#!/bin/sh\n{fault}\n")
    program.chmod(0o755)
    done = run("work", made, "--exec", program, "--batch-size", "3", "--drain")
    assert done.code == ExitCode.FAILED
    assert done.out.startswith("1 completed, 0 retried, 0 failed, 2 released")
    expected = f"rowq: the command cannot run: {program}: {words}; no message was made dead\n"
    assert done.err.endswith(expected)
    assert untouched(queue, made) == 3


def test_worker_waiting_for_program_can_be_stopped(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    fill(queue, made, 2)
    program = tmp_path / "run"
    program.write_text('#!/bin/sh\nrm "$0"; (sleep 1; kill -TERM $PPID) >&2 &\n')
    program.chmod(0o755)
    done = work(database_url, made, "--exec", program, "--json")
    assert (done.returncode, counts(done)) == (0, {"processed": 1, "released": 1})
    assert untouched(queue, made) == 1
