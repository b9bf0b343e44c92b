"""rowq work --exec: programs of a worker that stops, is killed, or loses a lease."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

import rowq
from tests.cli.working import counts, is_running, lines, script, work, worker
from tests.engines.base import wait_until

pytestmark = pytest.mark.slow("starts, stops and kills programs")

# Starts two processes, records their ids, and then its own end.
LONG = """
cd "{}"
sleep 60 &
echo $! >> pids; echo $$ >> pids
trap 'echo end >> log; exit 1' TERM
echo begin >> log
wait
"""


def have_ended(pids: Path) -> bool:
    """Return whether no process of a file of ids runs."""
    return not any(is_running(int(pid)) for pid in lines(pids))


def test_program_ends_before_lost_message_is_retried(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, 1)
    again = f'[ -e "{tmp_path}/log" ] && echo again >> "{tmp_path}/log" && exit 0\n'
    command = script(
        tmp_path / "run",
        f'echo "$ROWQ_CLAIM_ID" >> "{tmp_path}/claim"\n' + again + LONG.format(tmp_path),
    )
    arguments = (made, "--exec", command, "--lease-seconds", 3, "--drain", "--json")
    with worker(database_url, *arguments) as process:
        wait_until(lambda: lines(tmp_path / "log") == ["begin"], "the program runs")
        queue.release(made, int(lines(tmp_path / "claim")[0]))
        out, _ = process.communicate()
    assert lines(tmp_path / "log") == ["begin", "end", "again"]
    assert have_ended(tmp_path / "pids")
    printed = json.loads(out)
    assert (printed["processed"], printed["stale"]) == (1, 1)


@pytest.mark.parametrize("line", ["", "trap '' TERM\n"], ids=["obeys", "ignores SIGTERM"])
def test_command_is_ended_and_retried_after_timeout(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, line: str
) -> None:
    (sent,) = queue.enqueue_batch(made, [1])
    program = f'{line}cd "{tmp_path}"; echo $$ >> pids; echo slow >&2; while :; do sleep 0.1; done'
    command = script(tmp_path / "run", program)
    queue.alter_queue(made, backoff_base_seconds=900)
    arguments = (made, "--exec", command, "--timeout-seconds", 0.5, "--drain", "--json")
    assert counts(work(database_url, *arguments)) == {"retried": 1}
    details = queue.get_message(made, sent.message_id)
    assert details is not None
    assert details.last_error == "the command exceeded its timeout: slow"
    assert have_ended(tmp_path / "pids")


@pytest.mark.chaos
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_killed_worker_ends_its_programs(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, number: signal.Signals
) -> None:
    """A second signal or SIGKILL ends it; the message returns when its lease expires."""
    queue.enqueue(made, 1)
    command = script(tmp_path / "run", LONG.format(tmp_path))
    with worker(database_url, made, "--exec", command, TMPDIR=str(tmp_path)) as process:
        wait_until(lambda: lines(tmp_path / "log") == ["begin"], "the program runs")
        assert len(list(tmp_path.glob("rowq-*"))) == 1
        while process.poll() is None:
            process.send_signal(number)
            time.sleep(0.1)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: have_ended(tmp_path / "pids"), "the program has ended")
    wait_until(lambda: not list(tmp_path.glob("rowq-*")), "its file is gone")
    assert queue.queue_stats(made)[0].leased == 1


def test_first_signal_lets_program_finish(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, 1)
    command = script(tmp_path / "run", "kill -TERM $PPID; sleep 1")
    done = work(database_url, made, "--exec", command, "--json", TMPDIR=str(tmp_path))
    assert (done.returncode, counts(done)) == (0, {"processed": 1})
    assert not list(tmp_path.glob("rowq-*"))


def test_child_with_standard_input_does_not_block_worker(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, os.urandom(300_000))
    command = script(
        tmp_path / "run", f'exec 3<&0; sleep 60 <&3 > "{tmp_path}/out" & echo $! > "{tmp_path}/pid"'
    )
    done = work(database_url, made, "--exec", command, "--drain", "--json")
    assert counts(done) == {"processed": 1}
    (pid,) = map(int, lines(tmp_path / "pid"))
    assert is_running(pid), "the worker has waited for it"
    os.kill(pid, signal.SIGKILL)


def test_child_with_standard_output_does_not_block_worker(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    for _ in range(2):
        queue.enqueue(made, 1)
    command = script(tmp_path / "run", f'echo out; sleep 60 & echo $! >> "{tmp_path}/pids"')
    streams = f'> "{tmp_path}/out" 2>&1'
    done = work(database_url, made, "--exec", command, "--drain", streams=streams)
    assert done.returncode == 0
    assert lines(tmp_path / "out").count("out") == 2
    pids = list(map(int, lines(tmp_path / "pids")))
    assert all(map(is_running, pids)), "the worker has waited for them"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
