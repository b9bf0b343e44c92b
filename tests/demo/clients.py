"""Starts processes that use a private server, and inspects them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from rowq.tools.local_postgres import directory

PACKAGES = Path(directory.__file__).parents[3]

# Uses the server in argv[1], prints its pid and holds it until end of standard input.
CLIENT = """
import sys
from pathlib import Path
from rowq.tools.local_postgres.server import LocalPostgres
with LocalPostgres(Path(sys.argv[1])) as server:
    print(server.pid, server.url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def client(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that uses the server during a block."""
    command = [sys.executable, "-c", CLIENT, str(home)]
    environment = os.environ | {"PYTHONPATH": str(PACKAGES)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def pid_from(process: subprocess.Popen[str]) -> int:
    """Wait until a client uses the server, and return the server's pid."""
    assert process.stdout is not None
    return int(process.stdout.readline().split()[0])


def runs(pid: int) -> bool:
    """Return whether a process with this pid runs (zombies do not)."""
    try:
        return after_name(pid)[0] != "Z"
    except FileNotFoundError:
        return False


def after_name(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name: state, parent pid and more."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Return whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def answer(url: str, query: str, *, after: str = "select 1") -> object:
    """Run a statement, then a query; return its single value."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(after)
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]
