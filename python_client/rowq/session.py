# Generated from async_session.py by make generate. Do not edit.
"""Sessions: a queue's connection, owned by the caller or by rowq.

Each layer retries different failures. No failure is retried by two layers:

- OwnedSession retries a call if the connection is lost, the server is read-only, or the
  server rolled the call back. A worker's session (`retries_transient`) also retries other
  transient errors, such as a lock timeout or a full disk.
- Context.persist of a worker retries everything else: connecting, listening, and reading the state
  of a transaction.

The engine classifies errors (engines/base.py). docs/python/errors.md lists codes and times.

An exception of another origin, such as a signal handler or a cancelled task, closes the
connection: it may be in the middle of an answer.
"""

# ruff: noqa: D102 - the sessions' methods are described where Session declares them

import logging
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from rowq.arguments import check_argument
from rowq.backoff import Backoff
from rowq.contract import load_contract
from rowq.engines import engine_for_url, is_foreseen, without_password
from rowq.engines.base import LONGEST_WAIT_SECONDS, Engine, Row
from rowq.engines.connections import refuse_own_claim, source_of
from rowq.engines.uncommitted import target_of
from rowq.errors import (
    ConnectionLost,
    EngineUnknown,
    QueueClosed,
    RowqError,
    WrongTransactionState,
)
from rowq.forks import after_fork, keep_forever
from rowq.rights import explain_denial

_log = logging.getLogger("rowq")

SLICE_SECONDS = 5.0
"""Longest wait of one call; a server may wait this long for a client that is gone."""

# Pause after each slice, so that another caller gets the connection: a Python lock is not fair.
_TURN_SECONDS = 0.001

_WAITS = {"dequeue_wait": "dequeue_fast", "wait_for_result": "get_result"}
"""Routines that commit while they wait, and their counterparts that do not wait."""
_LOST, _WRONG_SERVER = "connection lost", "the server is read-only"
_ROLLED_BACK, _TRANSIENT = "rolled back", "transient error"


class Session(ABC):
    """One connection to call routines on."""

    engine: Engine

    @abstractmethod
    def connection(self) -> Any:
        """Return the driver's connection, which is usable as far as the client can see."""

    @abstractmethod
    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        """Call a routine and return its rows.

        until: end of a wait, by time.monotonic(). The call waits until then, at most SLICE_SECONDS.
        """

    @abstractmethod
    def close(self) -> None:
        """Close what this session opened; the next call opens it again."""

    @abstractmethod
    def end(self) -> None:
        """Close permanently: later calls raise QueueClosed; a running call ends first."""

    def wait(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        wait_seconds: float,
        is_over: Callable[[Any], bool],
    ) -> list[Row]:
        """Call a waiting routine in slices, until `is_over(answer)` or the timeout.

        The slices are short because the server does not notice a client that is gone.
        """
        seconds = check_argument("wait_seconds", "float", wait_seconds)
        if seconds is None or not 0 < seconds <= LONGEST_WAIT_SECONDS:
            return self.call(routine, {**arguments, "wait_seconds": seconds})
        until = time.monotonic() + seconds
        while True:
            rows = self.call(routine, arguments, until)
            if is_over(rows[0][0]):
                return rows
            time.sleep(_TURN_SECONDS)
            if time.monotonic() >= until:
                return rows


class BorrowedSession(Session):
    """The caller's own connection: never opened, committed, repeated or closed here."""

    def __init__(self, connection: Any, *, savepoint: bool = False) -> None:
        """Find the engine of `connection`; raises EngineUnknown.

        savepoint: keep an open transaction usable after a failed call, on every engine.
        """
        if isinstance(connection, str):
            raise EngineUnknown("expected a connection, got str; did you mean rowq.connect(url)?")
        self._source = source_of(connection)
        self.engine = self._source.engine
        self._savepoint = savepoint
        self._ended = False
        if self._source.is_async:
            raise EngineUnknown("Queue needs a synchronous connection; AsyncQueue takes this one")

    def connection(self) -> Any:
        return self._source.driver_connection()

    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        if self._ended:
            raise QueueClosed("this Queue is closed; create a new one for the connection")
        connection = self.connection()
        if routine in _WAITS and self.engine.in_transaction(connection):
            raise WrongTransactionState(
                f"{routine} commits while it waits; use autocommit outside a transaction,"
                f" or {_WAITS[routine]}"
            )
        refuse_own_claim(connection, routine, arguments)
        arguments = _with_wait(arguments, until)
        try:
            if not self._savepoint:
                rows = self.engine.call(connection, routine, arguments)
            else:
                with self.engine.savepoint(connection):
                    rows = self.engine.call(connection, routine, arguments)
        except Exception as error:
            explain_denial(self.engine, connection, routine, error)
            raise
        if rows and (target := target_of(routine, arguments)):
            self._source.watch(target)
        return rows

    def close(self) -> None:
        """Leave the connection to its owner."""

    def end(self) -> None:
        self._ended = True


class OwnedSession(Session):
    """A connection of rowq's own in autocommit, which reconnects with backoff.

    Threads or tasks that share it take turns. A forked process opens its own connection.
    """

    def __init__(
        self,
        url: str,
        *,
        reconnect_seconds: float = 60.0,
        repeat_seconds: float | None = None,
        retries_transient: bool = False,
        awaits_writes: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Store the URL; connect later.

        reconnect_seconds: how long a call retries after its first failure.
        repeat_seconds: the same while the server answers, but refuses the call or rolls it back.
            Default: reconnect_seconds.
        retries_transient: whether to retry other transient errors.
        awaits_writes: whether to retry while the server is read-only, as after a failover;
            otherwise raise at once.
        sleep: waits between two attempts.
        """
        self.engine = engine_for_url(url)
        self._url = url
        self._reconnect_seconds = reconnect_seconds
        self._repeat_seconds = reconnect_seconds if repeat_seconds is None else repeat_seconds
        self._retries_transient = retries_transient
        self._awaits_writes = awaits_writes
        self._sleep = sleep
        self._connection: Any = None
        self._ended = False
        self._closes_after_calls = False
        # Held during a call, its retries and the pauses between them.
        self._lock = threading.Lock()
        _sessions.add(self)

    @property
    def is_open(self) -> bool:
        """Whether it has a connection."""
        return self._connection is not None

    def open(self) -> None:
        """Connect for the first time; raises CannotConnect at once if that fails."""
        self._connection = self.engine.connect(self._url)

    def connection(self) -> Any:
        with self._lock:
            return self._idle_connection()

    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        try:
            with self._lock:
                return self._persist(routine, arguments, until)
        finally:
            if self._ended or self._closes_after_calls:
                self._close_unless_in_use()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.close(connection)

    def close_after_calls(self) -> None:
        """Close now, or after the running call, and after each later call."""
        self._closes_after_calls = True
        self._close_unless_in_use()

    def end(self) -> None:
        self._ended = True
        self._close_unless_in_use()

    def forget(self) -> None:
        """In a forked process, leave the connection and its running call to the parent."""
        if self._connection is not None:
            keep_forever(self._connection)
            self._connection = None
        self._lock = threading.Lock()

    def _close_unless_in_use(self) -> None:
        """Close now, or leave it to the running call."""
        if not self._lock.locked():
            with self._lock:
                self.close()

    def break_off(self) -> None:
        """Close the connection, even during a call or a transaction."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.break_off(connection)

    def _idle_connection(self) -> Any:
        """Return a connection ready for a call; reconnect if the last one is unusable."""
        if self._ended:
            raise QueueClosed("this Queue is closed; open a new one with rowq.connect")
        if self._connection is not None:
            try:
                is_idle = self.engine.is_idle(self._connection)
            except BaseException:
                self.break_off()
                raise
            if not is_idle:
                self.break_off()
        if self._connection is None:
            self.open()
        return self._connection

    def _persist(
        self, routine: str, arguments: Mapping[str, Any], until: float | None
    ) -> list[Row]:
        """Retry a call until it succeeds, must not be repeated, or times out."""
        backoff = Backoff(first=0.1, cap=5.0)
        failed_at: float | None = None
        was_lost = False
        while True:
            sent = False
            try:
                connection = self._idle_connection()
                if was_lost:
                    _log.warning("%s: %s: reconnected", without_password(self._url), routine)
                    was_lost = False
                sent = True
                return self._call(connection, routine, _with_wait(arguments, until))
            except Exception as error:
                trouble = self._trouble(error)
                failed_at = time.monotonic() if failed_at is None else failed_at
                is_connected = trouble in {_ROLLED_BACK, _TRANSIENT}
                seconds = self._repeat_seconds if is_connected else self._reconnect_seconds
                is_too_late = time.monotonic() >= failed_at + seconds
                if not trouble or (is_connected and is_too_late):
                    raise
                if not is_connected:
                    was_lost = True
                    self.close()
                    is_unknown = trouble == _LOST and sent and self.engine.was_sent(error)
                    self._refuse_to_repeat(routine, error, is_unknown)
                    if is_too_late or (trouble == _WRONG_SERVER and not self._awaits_writes):
                        raise self._timed_out(routine, trouble, error) from error
                delay = backoff.next()
                _log.warning(
                    "%s: %s: %s, retrying in %.1f s: %s",
                    without_password(self._url),
                    routine,
                    trouble,
                    delay,
                    " ".join(str(error).split()),
                )
            self._sleep(delay)

    def _call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Make a call; close the connection on an exception that is not from the database."""
        try:
            if routine == "dequeue_wait":
                return self.engine.dequeue_wait(connection, arguments)
            return self.engine.call(connection, routine, arguments)
        except BaseException as error:
            if not is_foreseen(error):
                self.break_off()
            elif isinstance(error, Exception):
                explain_denial(self.engine, connection, routine, error)
            raise

    def _trouble(self, error: Exception) -> str:
        """Return why a call may be retried, for the log; an empty string if it may not."""
        if self.engine.is_connection_lost(error):
            return _LOST
        if self.engine.is_wrong_server(error):
            return _WRONG_SERVER
        if self.engine.is_rolled_back(error):
            return _ROLLED_BACK
        is_retryable = isinstance(error, RowqError) and error.retryable
        is_transient = is_retryable or self.engine.is_shortage(error)
        return _TRANSIENT if self._retries_transient and is_transient else ""

    def _refuse_to_repeat(self, routine: str, error: Exception, is_unknown: bool) -> None:
        """Raise ConnectionLost if a call may have taken effect and must not be repeated."""
        if is_unknown and not load_contract().routine(routine).repeatable:
            raise ConnectionLost(
                f"connection lost during {routine}; the call may or may not have taken effect",
                is_unknown=True,
            ) from error

    def _timed_out(self, routine: str, trouble: str, error: Exception) -> ConnectionLost:
        """Return the error of a call that has failed for too long."""
        waits = self._reconnect_seconds and (trouble == _LOST or self._awaits_writes)
        within = f" within {self._reconnect_seconds:g} s" if waits else ""
        if trouble == _WRONG_SERVER:
            return ConnectionLost(f"{routine} was not executed{within}: {trouble}: {error}")
        return ConnectionLost(f"no connection for {routine}{within}: {error}")


def _with_wait(arguments: Mapping[str, Any], until: float | None) -> Mapping[str, Any]:
    """Return the arguments of a call; if it waits, with the remaining wait_seconds."""
    if until is None:
        return arguments
    remaining = max(until - time.monotonic(), 0.0)
    return {**arguments, "wait_seconds": min(remaining, SLICE_SECONDS)}


_sessions: weakref.WeakSet[OwnedSession] = weakref.WeakSet()


def _forget_all() -> None:
    for session in list(_sessions):
        session.forget()


after_fork(_forget_all)
