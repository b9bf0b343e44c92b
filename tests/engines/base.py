"""What the tests ask of a database server; one package in this directory per engine."""

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
"""Stands in the reason of every skip, between why a test is skipped and how to have it run."""
REMEDIES = {
    "psql": "--engine postgres18",
    "restart": "a private server: Docker, or local programs",
    "async": "--engine postgres18",
    "databases": "a private server: Docker, or local programs",
    "days": "--engine postgres18,mariadb",
    "waits": "the engine itself, not one that speaks its language",
    "log": "local programs",
    "genuine": "the engine itself, not one that speaks its language",
    "groups": "--engine postgres18,mariadb",
    "limits": "--engine postgres18,mariadb",
    "predecessors": "--engine postgres18,mariadb",
    "results": "--engine postgres18,mariadb",
    "topics": "--engine postgres18,mariadb",
    "cancel": "--engine postgres18,mariadb",
    "expiry": "--engine postgres18,mariadb",
}
"""By capability of a server, what to run for a test that needs it."""


class Unavailable(Exception):  # noqa: N818 - it reads as what it says
    """A server cannot be had in this way; the message says why."""


class Server(Protocol):
    """One running server of one engine and version.

    name: such as "mariadb10.11". product: such as "mariadb". engine: such as "mysql".
    how: how it runs, for people to read.
    capabilities: what tests marked with `requires` may rely on:
        psql         it is what the READMEs' examples are written for
        restart      the server can be killed and started again
        async        AsyncQueue serves the engine
        databases    there can be several databases with rowq in it at a time
        days         the archive has a partition for each day, dropped whole when readers let it go
        waits        it tells which session waits for a lock of which
        log          a failed test shows what it has written meanwhile: it is a private server
        genuine      it is the engine itself, with its locks and plans, not one that only speaks
                     its language
        groups       messages may have a group_key
        limits       rowq has max_leased and rate_limit there
        predecessors messages may wait for others to end
        results      how messages end may be kept, with results
        topics       queues may be bound to topics
        cancel       messages in workers' hands may be cancelled, and messages by what they are like
        expiry       messages may have expire_seconds
    """

    name: str
    product: str
    engine: str
    how: str
    capabilities: frozenset[str]

    def fresh_database(self) -> str:
        """Make an empty database and return its URL; raises Unavailable when it has no other."""

    def drop_database(self, url: str) -> None:
        """Drop a database made by fresh_database, whoever is connected to it."""

    def connect(self, url: str, *, autocommit: bool = True) -> Connection:
        """Open a session."""

    def session_id(self, connection: Connection) -> int:
        """Return the number by which the server knows a session."""

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock at this moment, and whom each waits for."""

    def waits_for_limit(self, session: int) -> bool:
        """Whether a dequeue waits at this moment for another one's at a queue with limits."""

    def kill_session(self, session: int) -> None:
        """End a session from outside, and wait until the server has forgotten it."""

    def crash(self) -> None:
        """End the server as a power failure would; needs the capability `restart`."""

    def restart(self) -> None:
        """Stop the server if it runs, and start it again under the same URLs."""

    def close(self) -> None:
        """Drop what was made, and stop the server if it was started here."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """How a server that was started here is ended and begun again, None where it cannot be done.

    log: the file that a private server writes to.
    """

    stop: Callable[[], None] | None = None
    crash: Callable[[], None] | None = None
    restart: Callable[[], None] | None = None
    log: Path | None = None


GIVEN = Control()
"""Of a server that was not started here."""


class ControlledServer(ABC):
    """What a server does by its control."""

    name: str
    how: str

    def __init__(self, control: Control) -> None:
        self._control = control

    def _capabilities(self, *own: str) -> frozenset[str]:
        """Return the capabilities of an engine with those that the control gives; names its log."""
        given = {"restart": self._control.restart, "log": self._control.log}
        if self._control.log is not None:
            LOGS.add(self._control.log, self.name)
        return frozenset([*own, *(word for word, way in given.items() if way is not None)])

    @abstractmethod
    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock at this moment, and whom each waits for."""

    def waits_for_limit(self, session: int) -> bool:
        """Whether a dequeue waits for the limit lock of a queue, which another one has."""
        return session in self.waiting_sessions()

    def crash(self) -> None:
        """End the server as a power failure would."""
        if self._control.crash is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be killed from here")
        self._control.crash()

    def restart(self) -> None:
        """Stop the server if it runs, and start it again under the same URLs."""
        if self._control.restart is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be restarted from here")
        self._control.restart()

    def close(self) -> None:
        """Stop the server if it was started here, else drop what was made."""
        if self._control.stop is not None:
            self._control.stop()
        else:
            self._drop_all()

    @abstractmethod
    def _drop_all(self) -> None:
        """Drop what was made on a server that goes on."""


@runtime_checkable
class Limiting(Protocol):
    """A server that can limit a database, where its disk is not the tests' to fill."""

    def limit_space(self, url: str, spare_bytes: int | None) -> None:
        """Let a database grow by so much and no more, or by as much as it likes with None.

        Raises Unavailable where that cannot be had.
        """


class EngineProvider(Protocol):
    """The ways to servers of one product. A way that is closed raises Unavailable.

    engine: such as "mysql". product: the servers' name before the version, such as "mariadb".
    versions: those that a test may ask for, the preferred one first. is_large: whether a server
    takes so much memory that the worker processes of a run share one.
    """

    engine: str
    product: str
    versions: tuple[str, ...]
    is_large: bool

    def at_hand(self) -> list[str]:
        """Return the versions that are tested unless others are named."""

    def outlook(self) -> list[str]:
        """Say cheaply what the ways look like, one line each, for the head of a report."""

    def from_url(self, url: str) -> Server:
        """Use a server that runs already; one database after the other is made in it."""

    def from_docker(self, version: str) -> Server:
        """Start the engine's official image."""

    def from_local(self, version: str) -> Server:
        """Start programs that are installed here."""


def url_variable(product: str) -> str:
    """Return the name of the variable with the URL of a server to test on."""
    return f"ROWQ_TEST_{product.upper()}_URL"


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Poll until a condition is true; raise AssertionError naming what did not happen.

    A loaded machine takes its time, and nobody waits longer than it takes.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} seconds: {what}")
        time.sleep(0.01)


def wait_until_blocked(server: Server, session: int, by: int | None = None) -> None:
    """Wait until a session waits for a lock, of one other session if that is named."""

    def blocked() -> bool:
        blockers = server.waiting_sessions().get(session)
        return blockers is not None and (by is None or by in blockers)

    wait_until(blocked, f"session {session} waits for a lock")
