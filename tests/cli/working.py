"""Runs of `rowq work` as the installed program, and scripts for --exec."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("rowq"))


def environment(url: str, **more: str) -> dict[str, str]:
    """Return the environment of a worker."""
    return os.environ | {"ROWQ_URL": url} | more


def work(
    url: str, *arguments: object, streams: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run `rowq work` to its end, with shell redirections and more environment variables."""
    command = [PROGRAM, "work", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {streams}', *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(url, **more),
        check=False,
    )


@contextmanager
def worker(
    url: str, *arguments: object, stderr: int | None = None, **more: str
) -> Iterator[subprocess.Popen[str]]:
    """Run `rowq work` during a block, then kill it."""
    with subprocess.Popen(
        [PROGRAM, "work", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        cwd=ROOT,
        env=environment(url, **more),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def counts(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the nonzero counts that a worker with --json has printed."""
    printed = json.loads(done.stdout)
    return {name: count for name, count in printed.items() if name != "started_at" and count}


def script(path: Path, text: str) -> str:
    """Write a shell script and return its command."""
    path.write_text(text)
    return f"sh {path}"


def lines(path: Path) -> list[str]:
    """Return the lines of a file; none if it does not exist."""
    return path.read_text().splitlines() if path.exists() else []


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in {"Z", "X"}
    return False
