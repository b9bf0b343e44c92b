"""The interface of test servers; each engine has a package in this directory."""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tests.engines.logs import LOGS

Connection = Any
"""A connection of the engine's own driver."""


TO_RUN = "; to run it: "
"""Separates the reason of a skip from its remedy."""
REMEDIES = {
    "psql": "--engine postgres18",
    "restart": "a private server: Docker, or local programs",
    "async": "--engine postgres18",
    "databases": "a private server: Docker, or local programs",
    "days": "--engine postgres18,mariadb",
    "waits": "the engine itself, not a compatible one",
    "log": "local programs",
    "genuine": "the engine itself, not a compatible one",
    "groups": "--engine postgres18,mariadb",
    "limits": "--engine postgres18,mariadb",
    "predecessors": "--engine postgres18,mariadb",
    "results": "--engine postgres18,mariadb",
    "topics": "--engine postgres18,mariadb",
    "cancel": "--engine postgres18,mariadb",
    "expiry": "--engine postgres18,mariadb",
}
"""The remedy for each capability that a server may lack."""


class Unavailable(Exception):  # noqa: N818 - it reads as what it says
    """A server cannot be started or used; the message is the reason."""


class Server(Protocol):
    """One running server of one engine and version.

    name: such as "mariadb10.11". product: such as "mariadb". engine: such as "mysql".
    how: how it runs, for display.
    capabilities: what tests marked with `requires` may need:
        psql         the READMEs' examples are written for it
        restart      the server can be killed and restarted
        async        AsyncQueue supports the engine
        databases    several of its databases can have rowq
        days         the archive has a partition per day
        waits        it shows which session waits for which
        log          the log of a private server is shown with a failed test
        genuine      the engine itself, with its locks and plans, not a compatible one
        groups       messages may have a group_key
        limits       queues may have max_leased and rate_limit
        predecessors messages may wait for others to end
        results      queues may have result_seconds
        topics       queues may have topic patterns
        cancel       cancel of leased messages, and cancel_many
        expiry       messages may have expire_seconds
    """

    name: str
    product: str
    engine: str
    how: str
    capabilities: frozenset[str]

    def fresh_database(self) -> str:
        """Create an empty database and return its URL; raise Unavailable if that is impossible."""

    def drop_database(self, url: str) -> None:
        """Drop a database of fresh_database, even with open sessions."""

    def connect(self, url: str, *, autocommit: bool = True) -> Connection:
        """Open a session."""

    def session_id(self, connection: Connection) -> int:
        """Return the server's number of a session."""

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock now, and the sessions that block each."""

    def waits_for_limit(self, session: int) -> bool:
        """Return whether a dequeue waits now for another dequeue of a limited queue."""

    def kill_session(self, session: int) -> None:
        """Kill a session and wait until it is gone."""

    def crash(self) -> None:
        """Kill the server; needs the capability `restart`."""

    def restart(self) -> None:
        """Restart the server under the same URLs."""

    def close(self) -> None:
        """Stop the server if it was started here, else drop what the tests created."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """Functions that stop, kill and restart a server that was started here, and its log file."""

    stop: Callable[[], None] | None = None
    crash: Callable[[], None] | None = None
    restart: Callable[[], None] | None = None
    log: Path | None = None


GIVEN = Control()
"""The control of a server that was not started here."""


class ControlledServer(ABC):
    """A server with a Control."""

    name: str
    how: str

    def __init__(self, control: Control) -> None:
        self._control = control

    def _capabilities(self, *own: str) -> frozenset[str]:
        given = {"restart": self._control.restart, "log": self._control.log}
        if self._control.log is not None:
            LOGS.add(self._control.log, self.name)
        return frozenset([*own, *(name for name, each in given.items() if each is not None)])

    @abstractmethod
    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock now, and the sessions that block each."""

    def waits_for_limit(self, session: int) -> bool:
        return session in self.waiting_sessions()

    def crash(self) -> None:
        if self._control.crash is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be killed from here")
        self._control.crash()

    def restart(self) -> None:
        if self._control.restart is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be restarted from here")
        self._control.restart()

    def close(self) -> None:
        if self._control.stop is not None:
            self._control.stop()
        else:
            self._drop_all()

    @abstractmethod
    def _drop_all(self) -> None:
        """Drop what the tests created on a server that keeps running."""


@runtime_checkable
class Limiting(Protocol):
    """A server that can limit the size of a database."""

    def limit_space(self, url: str, spare_bytes: int | None) -> None:
        """Let a database grow by `spare_bytes`, None for no limit; or raise Unavailable."""


class EngineProvider(Protocol):
    """Starts servers of one product; raises Unavailable if a method does not work here.

    engine: such as "mysql". product: the servers' name before the version, such as "mariadb".
    versions: the supported ones, the preferred one first. is_large: whether the worker processes of
    a run share one server, because it needs much memory.
    """

    engine: str
    product: str
    versions: tuple[str, ...]
    is_large: bool

    def at_hand(self) -> list[str]:
        """Return the versions that are tested by default."""

    def outlook(self) -> list[str]:
        """Return what is available, one line each, for the head of a report."""

    def from_url(self, url: str) -> Server:
        """Use a running server; databases are created in it and dropped."""

    def from_docker(self, version: str) -> Server:
        """Start the engine's official image."""

    def from_local(self, version: str) -> Server:
        """Start installed programs."""


def url_variable(product: str) -> str:
    """Return the environment variable for the URL of a server."""
    return f"ROWQ_TEST_{product.upper()}_URL"


def free_port() -> int:
    """Return an unused port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Poll until a condition is true; raise AssertionError with `what` after a timeout."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} seconds: {what}")
        time.sleep(0.01)


def wait_until_blocked(server: Server, session: int, by: int | None = None) -> None:
    """Wait until a session waits for a lock, of session `by` if it is set."""

    def blocked() -> bool:
        blockers = server.waiting_sessions().get(session)
        return blockers is not None and (by is None or by in blockers)

    wait_until(blocked, f"session {session} waits for a lock")
