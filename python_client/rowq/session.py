# Generated from async_session.py by make generate. Do not edit.
"""The connection of a queue object: the caller's own, or one that rowq keeps up.

Two layers make something again after an error, and neither repeats what the other does:

- OwnedSession repeats a call: after a lost connection, when the server does not write, and
  when the server undid the call; a worker's (`repeats_passing`) also when the server refused it
  for a reason that passes, such as a lock or a full disk.
- Context.persist of a worker repeats what is no call on such a session: to connect, to listen, and
  to look into a transaction.

What an error means is asked of the engine (engines/base.py). The client's page has the codes and
the times, under "When the connection breaks".

An exception that is no driver's, out of a signal's handler or of a cancelled task, breaks the
connection off: it may be in the middle of an answer.
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
from rowq.engines.base import Engine, Row
from rowq.engines.connections import refuse_own_claim, source_of
from rowq.engines.uncommitted import place_of
from rowq.errors import (
    ConnectionLost,
    EngineUnknown,
    QueueClosed,
    RowqError,
    WrongTransactionState,
)
from rowq.forks import after_fork, keep_for_ever
from rowq.rights import explain_denial

_log = logging.getLogger("rowq")

SLICE_SECONDS = 5.0
"""How long a server is asked to wait at a time; so long it may go on for a client that is gone."""

LONGEST_WAIT_SECONDS = 3600.0
"""The longest wait that the contract allows; the routine itself refuses a longer one."""

# After each slice a wait leaves the connection alone for so long, so that another caller gets it:
# a lock of Python's threads does not go to the thread that has waited for it longest.
_TURN_SECONDS = 0.001

_WAITS = {"dequeue_wait": "dequeue_fast", "wait_for_result": "get_result"}
"""Routines that commit while they wait, and those that look once."""
_LOST, _WRONG_SERVER = "connection lost", "the server is read-only, as a standby is"
_UNDONE, _PASSING = "undone", "refused for now"


class Session(ABC):
    """One connection to call routines on."""

    engine: Engine

    @abstractmethod
    def connection(self) -> Any:
        """Return the driver's connection, which is up as far as this side can see."""

    @abstractmethod
    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        """Call a routine and return its rows.

        until: by time.monotonic(), the moment at which a wait ends; it then waits for what is left
            of that, and for SLICE_SECONDS at most.
        """

    @abstractmethod
    def close(self) -> None:
        """Close what this session opened; the next call opens it again."""

    @abstractmethod
    def end(self) -> None:
        """Close for good: every later call raises QueueClosed; one under way ends first."""

    def wait(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        wait_seconds: float,
        is_over: Callable[[Any], bool],
    ) -> list[Row]:
        """Call a routine that waits until `is_over` its answer or the time is up, in slices.

        The server never waits for long, as it does not notice a client that is gone.
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

        savepoint: whether a call that raises leaves an open transaction usable on every engine.
        """
        if isinstance(connection, str):
            raise EngineUnknown("a text is no connection: use rowq.connect(url)")
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
            raise QueueClosed("the queue was closed; make another one for the connection")
        connection = self.connection()
        if routine in _WAITS and self.engine.in_transaction(connection):
            raise WrongTransactionState(
                f"{routine} commits while it waits: set the connection to autocommit and call it"
                f" outside a transaction, or use {_WAITS[routine]}"
            )
        refuse_own_claim(connection, routine, arguments)
        given = _left(arguments, until)
        try:
            if not self._savepoint:
                rows = self.engine.call(connection, routine, given)
            else:
                with self.engine.savepoint(connection):
                    rows = self.engine.call(connection, routine, given)
        except Exception as error:
            explain_denial(self.engine, connection, routine, error)
            raise
        if rows and (place := place_of(routine, arguments)):
            self._source.watch(place)
        return rows

    def close(self) -> None:
        """Leave the connection to its owner."""

    def end(self) -> None:
        self._ended = True


class OwnedSession(Session):
    """A connection of our own in autocommit; when it breaks, a new one is made with back-off.

    Threads or tasks that share it take turns. A process that is forked makes one of its own.
    """

    def __init__(
        self,
        url: str,
        *,
        reconnect_seconds: float = 60.0,
        repeat_seconds: float | None = None,
        repeats_passing: bool = False,
        awaits_writes: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Keep the URL; nothing is opened yet.

        reconnect_seconds: how long one call goes on trying after its first failure.
        repeat_seconds: how long it does so while the server answers, and undoes or refuses it;
            None: as long as reconnect_seconds.
        repeats_passing: whether a call is made again also after what is likely to pass.
        awaits_writes: whether a call is made again when the server is read-only, as after a
            failover; without it the error comes at once.
        sleep: waits between two attempts.
        """
        self.engine = engine_for_url(url)
        self._url = url
        self._reconnect_seconds = reconnect_seconds
        self._repeat_seconds = reconnect_seconds if repeat_seconds is None else repeat_seconds
        self._repeats_passing = repeats_passing
        self._awaits_writes = awaits_writes
        self._sleep = sleep
        self._connection: Any = None
        self._ended = False
        self._closes_after_calls = False
        # It is held for the length of a call, its repetitions and the pauses between them.
        self._lock = threading.Lock()
        _sessions.add(self)

    def open(self) -> None:
        """Connect for the first time; raises CannotConnect at once when that fails."""
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
        """Close now, and after each later call; one that is under way closes when it is over."""
        self._closes_after_calls = True
        self._close_unless_in_use()

    def end(self) -> None:
        self._ended = True
        self._close_unless_in_use()

    def forget(self) -> None:
        """In a forked process: leave the connection, and the call under way, to the parent."""
        if self._connection is not None:
            keep_for_ever(self._connection)
            self._connection = None
        self._lock = threading.Lock()

    def _close_unless_in_use(self) -> None:
        """Close now; or leave it to the call that is under way, when it is over."""
        if not self._lock.locked():
            with self._lock:
                self.close()

    def break_off(self) -> None:
        """Close the connection, in the middle of a call or a transaction perhaps."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.break_off(connection)

    def _idle_connection(self) -> Any:
        """Return the connection, ready for a call: a new one where the last cannot be used."""
        if self._ended:
            raise QueueClosed("the queue was closed; rowq.connect opens another one")
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
        """Make a call until it succeeds, must not be repeated, or has failed for too long."""
        backoff = Backoff(first=0.1, cap=5.0)
        failed_at: float | None = None
        was_lost = False
        while True:
            sent = False
            try:
                connection = self._idle_connection()
                if was_lost:
                    _log.warning("%s: %s: connected again", without_password(self._url), routine)
                    was_lost = False
                sent = True
                return self._call(connection, routine, _left(arguments, until))
            except Exception as error:
                trouble = self._trouble(error)
                failed_at = time.monotonic() if failed_at is None else failed_at
                is_connected = trouble in {_UNDONE, _PASSING}
                patience = self._repeat_seconds if is_connected else self._reconnect_seconds
                is_too_late = time.monotonic() >= failed_at + patience
                if not trouble or (is_connected and is_too_late):
                    raise
                if not is_connected:
                    was_lost = True
                    self.close()
                    is_unknown = trouble == _LOST and sent and self.engine.was_sent(error)
                    self._refuse_to_repeat(routine, error, is_unknown)
                    if is_too_late or (trouble == _WRONG_SERVER and not self._awaits_writes):
                        raise self._given_up(routine, trouble, error) from error
                delay = backoff.next()
                _log.warning(
                    "%s: %s: %s, trying again in %.1f s: %s",
                    without_password(self._url),
                    routine,
                    trouble,
                    delay,
                    " ".join(str(error).split()),
                )
            self._sleep(delay)

    def _call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Make a call; an exception that is not of the database leaves no connection behind."""
        try:
            return self.engine.call(connection, routine, arguments)
        except BaseException as error:
            if not is_foreseen(error):
                self.break_off()
            elif isinstance(error, Exception):
                explain_denial(self.engine, connection, routine, error)
            raise

    def _trouble(self, error: Exception) -> str:
        """Return why a call may be made again, in words for the log; an empty text: it may not."""
        if self.engine.is_connection_lost(error):
            return _LOST
        if self.engine.is_wrong_server(error):
            return _WRONG_SERVER
        if self.engine.is_undone(error):
            return _UNDONE
        return _PASSING if self._repeats_passing and self._is_passing(error) else ""

    def _is_passing(self, error: Exception) -> bool:
        """Whether the server, or a routine of rowq, refused a call for a reason that passes."""
        is_retryable = isinstance(error, RowqError) and error.retryable
        return is_retryable or self.engine.is_shortage(error)

    def _refuse_to_repeat(self, routine: str, error: Exception, is_unknown: bool) -> None:
        """Raise ConnectionLost where a call may have taken effect and must not be made again."""
        if is_unknown and not load_contract().routine(routine).repeatable:
            raise ConnectionLost(
                f"the connection broke during {routine}: whether it took effect is unknown",
                is_unknown=True,
            ) from error

    def _given_up(self, routine: str, trouble: str, error: Exception) -> ConnectionLost:
        """Return the error of a call that is not made again any more."""
        waits = self._reconnect_seconds and (trouble == _LOST or self._awaits_writes)
        within = f" within {self._reconnect_seconds:g} s" if waits else ""
        if trouble == _WRONG_SERVER:
            return ConnectionLost(f"{routine} was not executed{within}: {trouble}: {error}")
        return ConnectionLost(f"no connection for {routine}{within}: {error}")


def _left(arguments: Mapping[str, Any], until: float | None) -> Mapping[str, Any]:
    """Return the arguments of a call made now; of one that waits, with what is left of the time."""
    if until is None:
        return arguments
    left = max(until - time.monotonic(), 0.0)
    return {**arguments, "wait_seconds": min(left, SLICE_SECONDS)}


_sessions: weakref.WeakSet[OwnedSession] = weakref.WeakSet()


def _forget_all() -> None:
    for session in list(_sessions):
        session.forget()


after_fork(_forget_all)
