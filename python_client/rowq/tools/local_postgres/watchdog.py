"""Watchdog of a private PostgreSQL: creates its cluster, runs it, stops it after its last user.

server.py starts it as `python watchdog.py ORDER` with an Order as JSON. It outlives its starter, so
it uses only the standard library and is run by path.

Two files in the home directory carry locks, which the system releases even for a killed process:

    users   every user holds it shared; the watchdog that gets it exclusively stops the server
    server  held by the watchdog and, inherited, by every process of its server; while it is held,
            its text has the facts of the server. Once it is free, no backend and no shared memory
            is left.

It prints one line of JSON: {"pid": 123} or {"error": "..."}.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

PAUSE = 0.05
WATCH_SECONDS = 0.2
READY_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, and how.

    home: directory of the locks. directory: that of the cluster and the log, usually the same.
    socket_dir: directory of the socket. bin_dir: the programs. prefix: words before each command.
    user, group: the account to run as, None for the caller's. owner: uid of the cluster's files.
    settings: of the server. info: facts to write into the file `server`, besides the pid.
    """

    home: str
    directory: str
    socket_dir: str
    bin_dir: str
    prefix: list[str]
    user: int | None
    group: int | None
    owner: int
    settings: dict[str, str]
    info: dict[str, Any]

    @property
    def data(self) -> Path:
        """The cluster's directory."""
        return Path(self.directory, "data")

    @property
    def log(self) -> Path:
        """The log of initdb and the server."""
        return Path(self.directory, "server.log")


def take(file: IO[str], kind: int, seconds: float) -> bool:
    """Try for `seconds` to lock a file with LOCK_SH or LOCK_EX; return whether it worked."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(PAUSE)
        else:
            return True


def spawn(order: Order, lock: IO[str], program: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a program of PostgreSQL, which inherits the lock on `server`."""
    identity: dict[str, Any] = {}
    if order.user is not None:
        identity = {"user": order.user, "group": order.group, "extra_groups": []}
    with order.log.open("ab") as log:
        return subprocess.Popen(
            [*order.prefix, str(Path(order.bin_dir, program)), *words],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock.fileno(),),
            start_new_session=True,
            **identity,
        )


def make_cluster(order: Order, lock: IO[str]) -> None:
    """Create the cluster unless it exists; it is renamed only when complete."""
    if (order.data / "PG_VERSION").exists():
        return
    new = Path(order.directory, "data.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    change_owner(new, order.owner)
    words = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    initdb = spawn(order, lock, "initdb", "-D", str(new), *words, "--no-instructions")
    if initdb.wait() != 0:
        raise RuntimeError(f"initdb failed with status {initdb.returncode}")
    new.rename(order.data)


def change_owner(path: Path, owner: int) -> None:
    """Change the owner of a file or directory to the server's user."""
    if path.lstat().st_uid != owner:
        os.chown(path, owner, -1, follow_symlinks=False)


def start(order: Order, lock: IO[str]) -> subprocess.Popen[bytes]:
    """Start the server and wait until it is ready; raise RuntimeError."""
    if order.data.stat().st_uid != order.owner:
        for folder, folders, files in os.walk(order.data):
            for name in (".", *folders, *files):
                change_owner(Path(folder, name), order.owner)
    pid_file = order.data / "postmaster.pid"
    # We hold the lock, so no process of an earlier server is left, even if its pid is in use.
    pid_file.unlink(missing_ok=True)
    quoted = '"' + order.socket_dir.replace('"', '""') + '"'
    settings = order.settings | {"unix_socket_directories": quoted}
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server = spawn(order, lock, "postgres", "-D", str(order.data), *words)
    end = time.monotonic() + READY_SECONDS
    while not is_ready(pid_file, server.pid):
        if server.poll() is not None:
            raise RuntimeError(f"postgres ended with status {server.returncode}")
        if time.monotonic() > end:
            stop(server)
            raise RuntimeError(f"postgres was not ready within {READY_SECONDS:.0f} seconds")
        time.sleep(PAUSE)
    return server


def is_ready(pid_file: Path, pid: int) -> bool:
    """Return whether the server with this pid accepts connections."""
    with contextlib.suppress(OSError):
        lines = pid_file.read_text().split("\n")
        return lines[0] == str(pid) and len(lines) > 7 and lines[7].strip() == "ready"
    return False


def stop(server: subprocess.Popen[bytes]) -> None:
    """Stop the server: fast, then immediately, then by SIGKILL."""
    for how, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, STOP_SECONDS)):
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.send_signal(how)
            server.wait(seconds)
            return
    server.kill()
    server.wait()


def remove_short_socket_dir(directory: Path) -> None:
    """Remove the directory with a short name that `run` links to, if it is a link."""
    run_dir = directory / "run"
    if run_dir.is_symlink():
        shutil.rmtree(run_dir.readlink(), ignore_errors=True)
        run_dir.unlink()


def run(order: Order, lock: IO[str]) -> subprocess.Popen[bytes]:
    """Start the server, record its facts, and return it."""
    if not take(lock, fcntl.LOCK_EX, READY_SECONDS):
        raise RuntimeError("an earlier server in this directory does not end")
    lock.truncate(0)  # remove the facts of the earlier server
    make_cluster(order, lock)
    server = start(order, lock)
    lock.write(json.dumps({**order.info, "pid": server.pid}))
    lock.flush()
    return server


def answer(**words: object) -> None:
    """Report the result to the starter, which may have been killed."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(words), flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def log_tail(order: Order) -> str:
    """Return the end of the log."""
    with contextlib.suppress(OSError):
        return order.log.read_text(errors="replace")[-1500:]
    return ""


def main() -> int:
    """Run a server until its last user is gone, or the server ends."""
    order = Order(**json.loads(sys.argv[1]))
    if os.fork() != 0:
        os._exit(0)  # the starter reaps this process; init adopts the other one
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Path(order.home, "server").open("a") as lock, Path(order.home, "users").open("a") as users:
        try:
            server = run(order, lock)
        except (OSError, RuntimeError) as error:
            answer(error=f"{error}\n{log_tail(order)}".strip())
            return 1
        try:
            answer(pid=server.pid)
            while server.poll() is None and not take(users, fcntl.LOCK_EX, 0):
                time.sleep(WATCH_SECONDS)
        finally:
            if server.poll() is None:
                stop(server)
                remove_short_socket_dir(Path(order.directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
