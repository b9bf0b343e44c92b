"""Output on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.working import PROGRAM, ROOT, environment, work
from tests.engines.base import wait_until


class Terminal:
    """A pseudo-terminal and its output."""

    def __init__(self) -> None:
        self._own, self.other = pty.openpty()
        os.set_blocking(self._own, False)
        self._read = b""

    def text(self) -> str:
        """Return the output so far."""
        while True:
            try:
                part = os.read(self._own, 4096)
            except OSError:
                return self._read.decode(errors="replace")
            if not part:
                return self._read.decode(errors="replace")
            self._read += part

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._own, keys)

    def close(self) -> None:
        """Close both ends."""
        os.close(self._own)
        os.close(self.other)


@contextmanager
def on_terminal(url: str, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], Terminal]]:
    """Run the program during a block, with standard input and error on a terminal."""
    terminal = Terminal()
    with subprocess.Popen(
        [PROGRAM, *map(str, arguments)],
        stdin=terminal.other,
        stdout=subprocess.PIPE,
        stderr=terminal.other,
        text=True,
        cwd=ROOT,
        env=environment(url, TERM="xterm", COLUMNS="120"),
    ) as process:
        try:
            yield process, terminal
        finally:
            process.kill()
            process.wait()
            terminal.close()


def shows(terminal: Terminal, words: str) -> Callable[[], bool]:
    return lambda: words in terminal.text()


def test_worker_shows_progress_on_terminal(database_url: str, queue: rowq.Queue, made: str) -> None:
    run = ("work", made, "--exec", "true", "--worker-name", "me")
    with on_terminal(database_url, *run) as (process, terminal):
        wait_until(shows(terminal, f"processing {made} as me, "), "it shows the queue")
        wait_until(shows(terminal, "; Ctrl-C to stop"), "it shows how to stop")
        product = "PostgreSQL 1", "MariaDB 1", "MySQL", "SQL Server", "Oracle"
        assert any(f"as me, {name}" in terminal.text() for name in product)
        queue.enqueue_batch(made, [1, 2, 3])
        wait_until(shows(terminal, "3 completed"), "the line counts the messages")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out.startswith("3 completed, 0 retried")


def test_worker_shows_default_name(database_url: str, made: str) -> None:
    with on_terminal(database_url, "work", made, "--exec", "true", "--drain") as (
        process,
        terminal,
    ):
        process.communicate(timeout=30)
        assert f":{process.pid}, " in terminal.text()


def test_worker_prints_only_summary_without_terminal(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue(made, 1)
    done = work(database_url, made, "--exec", "true", "--drain")
    assert "processing" not in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stdout.count("\n") == 1


def test_enqueue_prompts_for_body_on_terminal(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    with on_terminal(database_url, "enqueue", made) as (process, terminal):
        prompt = "reading the body from the terminal; end with Ctrl-D"
        wait_until(shows(terminal, prompt), "it prompts")
        terminal.type(b"typed\n\x04")
        out, _ = process.communicate(timeout=30)
    assert out.startswith("enqueued message ")
    assert queue.peek(made)[0].body == "typed\n"


def test_deleting_many_messages_asks_for_confirmation(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue_batch(made, [1, 2, 3])
    queue.fail_now(made, queue.dequeue_fast(made)[0].claim_id)
    asked = {
        ("queue", "purge", made): (
            f"{made} has 2 ready, 0 delayed, 0 blocked messages."
            " This deletes all of them. Continue?"
        ),
        ("queue", "purge", made, "--include-dead", "--max-messages", 2): (
            f"{made} has 2 ready, 0 delayed, 0 blocked, 1 dead messages."
            " This deletes at most 2 of them. Continue?"
        ),
        ("cancel-many", made): (
            f"This cancels all messages in {made}, except leased ones. Continue?"
        ),
        ("dead", "discard", made, "--all"): (
            f"{made} has 1 dead messages. This deletes all. Continue?"
        ),
    }
    for command, question in asked.items():
        with on_terminal(database_url, *command) as (process, terminal):
            wait_until(shows(terminal, question[-20:]), "it asks")
            terminal.type(b"n\n")
            process.communicate(timeout=30)
            assert question in terminal.text().replace("\r\n", "")
        assert process.returncode == ExitCode.REFUSED
    stats = queue.queue_stats(made)[0]
    assert (stats.ready, stats.dead) == (2, 1)
    with on_terminal(database_url, "queue", "purge", made) as (process, terminal):
        wait_until(shows(terminal, "Continue?"), "it asks")
        terminal.type(b"y\n")
        out, _ = process.communicate(timeout=30)
    assert out.strip() == "removed 2 messages"
    with on_terminal(database_url, "dead", "discard", made, "--all", "--yes") as (
        process,
        terminal,
    ):
        out, _ = process.communicate(timeout=30)
        assert "Continue?" not in terminal.text()
    assert out == "removed 1 messages\n"
