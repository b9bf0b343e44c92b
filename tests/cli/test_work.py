"""rowq work: functions, invalid arguments, the first signal."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.cli.working import script, work, worker
from tests.engines.base import Connection, wait_until
from tests.helpers.hard_headers import HARD, put_headers


@pytest.mark.parametrize("workers", [1, 2])
def test_function_is_called_with_every_message(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, workers: int
) -> None:
    sent = queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(20)])
    done = work(
        *(database_url, made, "tests.cli.handlers:record"),
        *("--workers", workers, "--drain", "--json"),
        ROWQ_TEST_RECORDS=str(tmp_path),
    )
    assert (done.returncode, json.loads(done.stdout)["processed"]) == (0, 20)
    handled = {int(file.name.partition(".")[0]) for file in tmp_path.iterdir()}
    assert handled == {message.message_id for message in sent}


def test_concurrent_function_handles_claim_at_once(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue_batch(made, [1, 2, 3])
    done = work(
        *(database_url, made, "tests.cli.handlers:meet_two_others", "--concurrent", "--drain"),
        ROWQ_TEST_RECORDS=str(tmp_path),
    )
    assert (done.returncode, done.stdout.partition(",")[0]) == (0, "3 completed")


def test_worker_takes_several_queues(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    others = [f"{made}/b", f"{made}/c"]
    for name in others:
        queue.create_queue(name)
    for name in (made, *others):
        queue.enqueue_batch(name, [1, 2])
    command = f"sh -c 'echo $ROWQ_QUEUE >> {tmp_path}/names'"
    also = [word for name in others for word in ("--also", name)]
    done = work(database_url, made, "--exec", command, *also, "--drain", "--batch-size", 1)
    assert done.stdout.startswith("6 completed")
    names = (tmp_path / "names").read_text().split()
    assert names == [made] * 2 + [others[0]] * 2 + [others[1]] * 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--weights", "1"], "--weights requires --also"),
        (["--also", "b", "--weights", "1"], "--weights must have 2 numbers, got 1"),
        (["--also", "b", "--weights", "1,x"], "--weights must be integers, got 1,x"),
        (["--also", "q"], "a queue is named twice"),
        (["--also", "b", "--stripes", "2"], "--also and --stripes are mutually exclusive"),
    ],
)
def test_wrong_choice_of_queues_is_refused(run: Run, arguments: list[str], text: str) -> None:
    ran = run("work", "q", "m:f", *arguments)
    assert ran.code == ExitCode.USAGE
    assert text in ran.err


def test_sigterm_finishes_running_command_and_releases_others(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(100)])
    command = script(
        tmp_path / "run",
        f'cd "{tmp_path}"; touch begun; while [ ! -e go ]; do sleep 0.05; done; sleep 0.05;'
        " touch finished$ROWQ_MESSAGE_ID\n",
    )
    arguments = (made, "--exec", command, "--json", "--batch-size", 100)
    with worker(database_url, *arguments) as process:
        wait_until((tmp_path / "begun").exists, "the first command runs")
        process.send_signal(signal.SIGTERM)
        (tmp_path / "go").touch()
        out, _ = process.communicate()
    counts = json.loads(out)
    finished = len(list(tmp_path.glob("finished*")))
    assert process.returncode == 0
    assert 1 <= finished < 100
    assert (counts["processed"], counts["released"]) == (finished, 100 - finished)
    assert queue.queue_stats(made)[0].ready == 100 - finished


def test_workers_option_runs_commands_in_parallel(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue_batch(made, [1, 2])
    command = script(
        tmp_path / "run",
        f'cd "{tmp_path}"; touch begun$ROWQ_MESSAGE_ID\n'
        "while [ $(ls | grep -c begun) -lt 2 ]; do sleep 0.05; done\n",
    )
    done = work(database_url, made, "--exec", command, "--workers", 2, "--drain")
    assert done.stdout.startswith("2 completed")


@pytest.mark.parametrize(
    ("number", "again"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_first_signal_is_announced_during_message(
    database_url: str,
    queue: rowq.Queue,
    made: str,
    tmp_path: Path,
    number: signal.Signals,
    again: str,
) -> None:
    queue.enqueue(made, 1)
    command = script(
        tmp_path / "run", f'cd "{tmp_path}"; touch begun; while [ ! -e go ]; do sleep 0.05; done\n'
    )
    with worker(database_url, made, "--exec", command, stderr=subprocess.PIPE) as process:
        wait_until((tmp_path / "begun").exists, "the command runs")
        process.send_signal(number)
        assert process.stderr is not None
        # The command runs until the line was read; log lines may precede it.
        answer = next(line for line in process.stderr if line.startswith("finishing"))
        assert answer == f"finishing the running messages; {again} again to stop now\n"
        (tmp_path / "go").touch()
        assert process.communicate()[0].startswith("1 completed")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("module:function", "--exec", "true"),
        ("--exec", ""),
        ("--exec", "no-such-program-anywhere"),
        ("--exec", "'never closed"),
        ("--exec", "true", "--transactional"),
        ("--exec", "true", "--concurrent"),
        ("--exec", "true", "--workers", 0),
    ],
)
def test_invalid_arguments_are_wrong_usage(
    run: Run, made: str, arguments: tuple[object, ...]
) -> None:
    assert run("work", made, *arguments).code == ExitCode.USAGE


@pytest.mark.parametrize("handler", ["nonsense", "no_such_module:f", "json:no_such_function"])
def test_missing_handler_is_reported_before_dequeue(
    run: Run, queue: rowq.Queue, made: str, handler: str
) -> None:
    queue.enqueue(made, 1)
    done = run("work", made, handler, "--drain")
    assert done.code == ExitCode.FAILED
    assert handler in done.err
    assert done.err.count("\n") == 1
    assert queue.queue_stats(made)[0].ready == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('no\\nsettings')", "RuntimeError: no settings"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def", "SyntaxError: "),
    ],
)
def test_import_error_of_handler_is_one_line(
    run: Run, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    (tmp_path / "broken_handlers.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    done = run("work", made, "broken_handlers:f", "--drain")
    assert done.code == ExitCode.FAILED
    assert f"cannot import handler broken_handlers:f: {words}" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("hard", HARD.values(), ids=HARD)
def test_unreadable_headers_fail_only_their_message(
    database_url: str, queue: rowq.Queue, connection: Connection, made: str, hard: str
) -> None:
    sent = queue.enqueue_batch(made, [rowq.NewMessage(data=n, headers={}) for n in range(5)])
    put_headers(connection, sent[0].message_id, hard)
    done = work(database_url, made, "--exec", "true", "--drain", "--json")
    counts = json.loads(done.stdout)
    assert (done.returncode, counts["processed"], counts["failed"]) == (0, 4, 1)
