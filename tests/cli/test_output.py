"""Standard output that is full, closed or a broken pipe, in any locale."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.working import PROGRAM, ROOT, environment, lines

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(database_url: str) -> Shell:
    """Return a function that runs a line of shell in which `rowq` is the installed program."""

    def run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", f'rowq() {{ "{PROGRAM}" "$@"; }}; {line}']
        variables = environment(database_url, **more)
        return subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=variables, check=False
        )

    return run


def errors(done: subprocess.CompletedProcess[str]) -> str:
    """Return rowq's lines on standard error, without warnings of drivers."""
    return "\n".join(line for line in done.stderr.splitlines() if line.startswith("rowq:"))


def states(queue: rowq.Queue, queue_name: str) -> tuple[int, int]:
    """Return how many messages are ready without an attempt, and how many are leased."""
    fresh = [
        message for message in queue.peek(queue_name, max_messages=1000) if message.attempt == 0
    ]
    return len(fresh), queue.queue_stats(queue_name)[0].leased


def let_peek_raise(directory: Path, error: str) -> None:
    """Write a startup module for this PYTHONPATH that makes `peek` raise an error."""
    (directory / "sitecustomize.py").write_text(
        f"import rowq\n\ndef peek(*_, **__):\n    raise {error}\n\nrowq.Queue.peek = peek\n"
    )


def test_dequeue_releases_unprinted_messages(shell: Shell, queue: rowq.Queue, made: str) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data="x" * 1000) for _ in range(20)])
    done = shell(f"rowq dequeue {made} --batch-size 20 > /dev/full")
    assert done.returncode == ExitCode.FAILED
    assert errors(done) == "rowq: standard output: No space left on device"
    assert states(queue, made) == (20, 0)


def test_dequeue_keeps_printed_messages_leased_on_full_disk(
    shell: Shell, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data="x" * 10_000) for _ in range(20)])
    done = shell(f"ulimit -f 100; rowq dequeue {made} --batch-size 20 > '{tmp_path}/out'")
    assert done.returncode == ExitCode.FAILED
    assert "File too large" in done.stderr
    *whole, cut = lines(tmp_path / "out")
    assert len([json.loads(line) for line in whole]) == 9
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut)
    assert states(queue, made) == (11, 9)


def test_broken_pipe_sets_exit_status_141_and_stops_dequeue(
    shell: Shell, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue_batch(made, [rowq.NewMessage(data="x" * 10_000) for _ in range(100)])
    done = shell(f"rowq dequeue {made} --batch-size 100 | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, errors(done)) == (ExitCode.BROKEN_PIPE, "")
    assert json.loads(done.stdout)["attempt"] == 1
    ready, leased = states(queue, made)
    # Bytes in the pipe and in head's buffer count as read.
    assert ready + leased == 100
    assert 1 <= leased <= 20


@pytest.mark.parametrize(
    "command", ["--help", "enqueue --help", "stats", "stats --json", "sql --engine postgres"]
)
def test_broken_pipe_ends_command_silently(shell: Shell, made: str, command: str) -> None:
    assert made
    done = shell(f"(sleep 0.1; rowq {command}; echo $? >&2) | exec true")
    assert done.stderr == f"{ExitCode.BROKEN_PIPE}\n"


def test_closed_standard_output_fails_and_releases(
    shell: Shell, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue(made, 1)
    done = shell(f"rowq dequeue {made} >&-")
    assert done.returncode == ExitCode.FAILED
    assert errors(done) == "rowq: standard output: Bad file descriptor"
    assert states(queue, made) == (1, 0)


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-"])
def test_unwritable_error_keeps_exit_status(shell: Shell, queue_name: str, streams: str) -> None:
    assert shell(f"rowq peek {queue_name} {streams}").returncode == ExitCode.REFUSED


@pytest.mark.parametrize(
    "locale",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX"},
    ],
)
def test_output_is_utf8_in_any_locale(
    shell: Shell, queue: rowq.Queue, made: str, locale: dict[str, str]
) -> None:
    for _ in range(2):
        queue.enqueue(made, "€ 🐘", message_type="€")
    done = shell(f"rowq dequeue {made}", **locale)
    assert (done.returncode, json.loads(done.stdout)["body"]) == (0, '"€ 🐘"')
    message_id = json.loads(done.stdout)["message_id"]
    assert "€ 🐘" in shell(f"rowq show {made} {message_id}", **locale).stdout
    assert "euro€" in shell("rowq peek euro€", PYTHONIOENCODING="latin-1").stderr


def test_error_is_escaped(shell: Shell, made: str, tmp_path: Path) -> None:
    let_peek_raise(tmp_path, "rowq.QueueNotFound('\\x1b]0;owned\\x07 \\u202e')")
    done = shell(f"rowq peek {made}", PYTHONPATH=str(tmp_path))
    assert "\\x1b]0;owned\\x07 \\u202e" in done.stderr


def test_unexpected_error_is_one_line_or_traceback(shell: Shell, made: str, tmp_path: Path) -> None:
    let_peek_raise(tmp_path, "LookupError('out of\\nthe blue')")
    done = shell(f"rowq peek {made}", PYTHONPATH=str(tmp_path))
    assert done.returncode == ExitCode.FAILED
    assert done.stderr == (
        "rowq: LookupError: out of the blue (set ROWQ_TRACEBACK=1 for the traceback)\n"
    )
    done = shell(f"rowq peek {made}", PYTHONPATH=str(tmp_path), ROWQ_TRACEBACK="1")
    assert done.returncode == ExitCode.FAILED
    assert "Traceback" in done.stderr
    assert "sitecustomize.py" in done.stderr
