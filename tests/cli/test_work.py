"""rowq work, as the installed program: commands and functions, exit codes, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rowq
from rowq.cli.errors import ExitCode
from tests.cli.conftest import Run
from tests.engines.base import wait_until

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("rowq"))


def work(
    url: str, *arguments: object, notes: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `rowq work` to its end."""
    return subprocess.run(
        [PROGRAM, "work", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(url, notes),
        check=False,
    )


def environment(url: str, notes: Path | None) -> dict[str, str]:
    """Return the environment of a worker."""
    return os.environ | {"ROWQ_URL": url, "ROWQ_TEST_NOTES": str(notes or "")}


def script(path: Path, text: str) -> str:
    """Write a shell script and return how to call it."""
    path.write_text(text)
    return f"sh {path}"


def test_a_command_gets_the_body_and_the_facts_and_completes(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    sent = queue.enqueue(made, {"n": "é"}, message_type="paid", headers={"a": "b"})
    command = script(
        tmp_path / "run",
        f'cat > "{tmp_path}/$ROWQ_MESSAGE_ID"\n'
        f'echo "$ROWQ_QUEUE|$ROWQ_ATTEMPT|$ROWQ_MESSAGE_TYPE|$ROWQ_HEADERS" > "{tmp_path}/facts"\n',
    )
    done = work(database_url, made, "--exec", command, "--drain", "--json")
    assert (done.returncode, json.loads(done.stdout)["processed"]) == (0, 1)
    assert (tmp_path / str(sent.message_id)).read_text() == '{"n":"é"}'
    assert (tmp_path / "facts").read_text() == f'{made}|1|paid|{{"a": "b"}}\n'
    assert queue.get_message(made, sent.message_id) is None


def test_exit_status_75_retries_and_the_next_attempt_can_complete(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, 1)
    command = script(
        tmp_path / "run",
        f'echo "$ROWQ_ATTEMPT $ROWQ_LAST_ERROR" >> "{tmp_path}/log"\n'
        '[ "$ROWQ_ATTEMPT" = 1 ] || exit 0\n'
        "echo not yet >&2; exit 75\n",
    )
    done = work(database_url, made, "--exec", command, "--drain", "--json")
    counts = json.loads(done.stdout)
    assert (done.returncode, counts["retried"], counts["processed"]) == (0, 1, 1)
    assert (tmp_path / "log").read_text() == "1 \n2 not yet\n"
    assert "not yet" in done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo it is broken >&2; exit 1", "it is broken"),
        ("exit 3", "exit status 3"),
        ("kill -KILL $$", "killed by signal 9"),
    ],
)
def test_any_other_end_of_the_command_is_final(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, text: str, reason: str
) -> None:
    queue.enqueue(made, 1)
    done = work(database_url, made, "--exec", script(tmp_path / "run", text), "--drain", "--json")
    assert (done.returncode, json.loads(done.stdout)["failed"]) == (0, 1)
    (dead,) = queue.list_dead(made)
    assert dead.last_error == reason


def test_a_command_that_does_not_read_a_binary_body_still_completes(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue(made, os.urandom(1_000_000))
    done = work(database_url, made, "--exec", "true", "--drain", "--json")
    assert json.loads(done.stdout)["processed"] == 1


def test_several_workers_run_several_commands_at_a_time(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    """Each command waits for the other one's file: alone it would never end."""
    for n in (1, 2):
        queue.enqueue(made, n)
    command = script(
        tmp_path / "run",
        f'cd "{tmp_path}"; read n; touch "here$n"; while [ ! -e here1 -o ! -e here2 ]; do'
        " sleep 0.05; done\n",
    )
    arguments = ("--exec", command, "--workers", 2, "--batch-size", 1, "--drain", "--json")
    assert json.loads(work(database_url, made, *arguments).stdout)["processed"] == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_is_called_with_every_message(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, workers: int
) -> None:
    sent = queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(20)])
    done = work(
        *(database_url, made, "tests.cli.handlers:note", "--workers", workers, "--drain", "--json"),
        notes=tmp_path,
    )
    assert (done.returncode, json.loads(done.stdout)["processed"]) == (0, 20)
    noted = {int(note.name.partition(".")[0]) for note in tmp_path.iterdir()}
    assert noted == {one.message_id for one in sent}


def test_sigterm_lets_the_running_command_finish_and_gives_the_rest_back(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data=n) for n in range(100)])
    command = script(
        tmp_path / "run",
        f'cd "{tmp_path}"; touch begun; while [ ! -e go ]; do sleep 0.05; done; sleep 0.05;'
        " touch finished$ROWQ_MESSAGE_ID\n",
    )
    with subprocess.Popen(
        [PROGRAM, "work", made, "--exec", command, "--json", "--batch-size", "100"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(database_url, None),
    ) as process:
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


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("module:function", "--exec", "true"),
        ("--exec", ""),
        ("--exec", "no-such-program-anywhere"),
        ("--exec", "'never closed"),
        ("--exec", "true", "--transactional"),
        ("--exec", "true", "--workers", 0),
    ],
)
def test_arguments_that_make_no_sense_are_wrong_usage(
    run: Run, made: str, arguments: tuple[object, ...]
) -> None:
    assert run("work", made, *arguments).code == ExitCode.USAGE


@pytest.mark.parametrize("handler", ["nonsense", "no_such_module:f", "json:no_such_function"])
def test_a_handler_that_cannot_be_found_is_told_before_anything_is_taken(
    run: Run, queue: rowq.Queue, made: str, handler: str
) -> None:
    queue.enqueue(made, 1)
    done = run("work", made, handler, "--drain")
    assert done.code == ExitCode.FAILED
    assert handler in done.err
    assert done.err.count("\n") == 1
    assert queue.queue_stats(made)[0].ready == 1


def test_an_unknown_queue_is_refused_by_number(run: Run, queue_name: str) -> None:
    done = run("work", queue_name, "--exec", "true", "--drain")
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ701 ")
