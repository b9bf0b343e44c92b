"""The sessions of a run: each makes random calls and records them."""

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rowq import BatchEnqueued, NewMessage, Queue, RowqError
from rowq.contract import load_contract
from rowq.engines import engine_for_url
from tests.concurrency.history import Recorder
from tests.concurrency.purges import Purge
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.dialects import dialect_of

MOST_PURGED = 100
LONGEST_LIFE = 1.0
"""Maximum expire_seconds of messages."""


class SessionLost(Exception):  # noqa: N818 - it reads as what it says
    """The session or the server was killed during a call."""


class TryAgain(Exception):  # noqa: N818 - it reads as what it says
    """A call failed with a retryable error."""


@dataclass
class Run:
    """The state that the sessions of a run share.

    direct_url: the database's own URL, if the sessions use a relay.
    may_be_retried: whether calls may fail with retryable errors, as during a migration.
    retried: these errors. deadlocks: names of sessions whose transaction a deadlock rolled back.
    stirs: whether producers keep transactions open and roll half of them back, and a maintainer
        purges messages once (`purge`), unless messages expire.
    lease_seconds: of every claim; a claim whose dequeue was lost is not visible before.
    expires: whether messages expire. has_results: whether the queue retains results.
    waits: whether messages have predecessors. groups: number of groups.
    group_limits: group_limit settings that alternate during the run.
    stop: set when sessions must end. producing: number of producers still working.
    """

    server: Server
    url: str
    queue_name: str
    recorder: Recorder
    largest_batch: int = 100
    lease_seconds: int = 300
    stirs: bool = False
    purge: Purge | None = None
    expires: bool = False
    has_results: bool = False
    waits: bool = False
    groups: int = 0
    group_limits: tuple[int, ...] = (1,)
    stop: threading.Event = field(default_factory=threading.Event)
    alive: dict[str, int] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    deadlocks: list[str] = field(default_factory=list)
    direct_url: str = ""
    may_be_retried: bool = False
    retried: list[str] = field(default_factory=list)


class Actor(ABC):
    """One session, with a thread, a name and seeded random numbers.

    Subclasses implement `act`: one turn, which returns whether there was work.
    """

    def __init__(self, run: Run, name: str, seed: int) -> None:
        self.run = run
        self.name = name
        self.seeded_random = random.Random(f"{seed} {name}")
        self.connection: Connection = None
        self._engine = engine_for_url(run.url)
        cancel = load_contract().routine("cancel").on(self._engine.name)
        self.reaches_leased = "leased" in {parameter.name for parameter in cancel.parameters}
        self.connect()
        self.thread = threading.Thread(target=self._live, name=name)

    @abstractmethod
    def act(self) -> bool:
        """Take a turn; return whether there was work."""

    def finished(self) -> bool:
        """Return whether this session has finished."""
        return self.run.stop.is_set()

    def call(
        self, action: str, function: Callable[[], Any], claim_id: int | None = None, **what: Any
    ) -> Any:
        """Make a call; if the session is lost, record an unknown effect."""
        start = self.run.recorder.clock()
        try:
            return function()
        except Exception as error:
            if self.may_try_again(error):
                raise TryAgain from error
            if not self.is_lost(error):
                raise
            self.run.recorder.record(start, self.name, action, claim_id, known=False, **what)
            raise SessionLost from error

    def log(self, start: float, action: str, *args: Any, **what: Any) -> None:
        """Record a call."""
        self.run.recorder.record(start, self.name, action, *args, **what)

    def cancel(self, messages: Sequence[int], *, include_leased: bool) -> None:
        """Cancel messages and record the outcomes."""
        start = self.now()
        hoped = "requested" if include_leased else "cancelled"
        outcomes = self.call(
            "cancel",
            lambda: self.queue.cancel(
                self.run.queue_name, sorted(set(messages)), include_leased=include_leased
            ),
            results=[(message_id, hoped) for message_id in messages],
        )
        self.log(
            start, "cancel", None, [(outcome.message_id, outcome.outcome) for outcome in outcomes]
        )

    def now(self) -> float:
        """Return the time of the history's clock."""
        return self.run.recorder.clock()

    def is_lost(self, error: Exception) -> bool:
        """Return whether an error means that the session is lost."""
        return isinstance(error, SessionLost) or self._engine.is_connection_lost(error)

    def may_try_again(self, error: Exception) -> bool:
        """Return whether an error is retryable and allowed in this run, and record it."""
        allowed = self.run.may_be_retried and not self.is_lost(error)
        retryable = isinstance(error, RowqError) and error.retryable
        if allowed and (retryable or self._engine.is_transient(error)):
            self.run.retried.append(f"{type(error).__name__}: {error}")
            return True
        return False

    def connect(self) -> None:
        """Open a session as soon as the server accepts one."""
        wait_until(self._connects, f"{self.name} gets a session", seconds=30)

    def _connects(self) -> bool:
        if self.connection is not None:
            self.connection.close()
        try:
            self.connection = self.run.server.connect(self.run.url)
        except Exception as error:
            if not self.is_lost(error):
                raise
            return False
        self.queue = Queue(self.connection)
        self.run.alive[self.name] = self.run.server.session_id(self.connection)
        return True

    def _live(self) -> None:
        try:
            while not self.finished():
                if not self._take_turn():
                    self.run.stop.wait(self.seeded_random.uniform(0.001, 0.02))
        except BaseException as error:
            self.run.errors.append(error)
            self.run.stop.set()
        finally:
            self.run.alive.pop(self.name, None)
            self.connection.close()

    def _take_turn(self) -> bool:
        try:
            return self.act()
        except TryAgain:
            return True
        except Exception as error:
            if self.may_try_again(error):
                return True
            if not self.is_lost(error):
                raise
            self.connect()
            return True


class Producer(Actor):
    """Enqueues messages one by one and in batches, some delayed, some with a dedup key."""

    def __init__(self, run: Run, name: str, seed: int, messages: int) -> None:
        super().__init__(run, name, seed)
        self.left = messages
        self.sent: list[int] = []

    def finished(self) -> bool:
        return self.left <= 0 or super().finished()

    def act(self) -> bool:
        batch = [self._message() for _ in range(min(self.left, self._size()))]
        if self.run.waits:
            batch = [self._waiting(message, place) for place, message in enumerate(batch)]
        start = self.now()
        holds = self.run.stirs and self.seeded_random.random() < 0.1
        sent = self.call("enqueue", lambda: (self._hold if holds else self._send)(batch))
        if not sent:
            return True
        made = [
            (result.message_id, message.priority)
            for result, message in zip(sent, batch, strict=True)
            if result.outcome == "enqueued"
        ]
        self._note_sent(start, sent, batch, made)
        self.sent = [*self.sent, *(message for message, _ in made)][-100:]
        self.left -= len(made)
        if made and self.seeded_random.random() < 0.05:
            self.cancel(
                self.seeded_random.choices(self.sent, k=3),
                include_leased=self.reaches_leased and self.seeded_random.random() < 0.5,
            )
        return True

    def _note_sent(
        self,
        start: float,
        sent: Sequence[BatchEnqueued],
        batch: Sequence[NewMessage],
        made: Sequence[tuple[int, int]],
    ) -> None:
        """Record enqueued messages, and their groups, predecessors and expiry."""
        end = self.now()
        self.log(start, "enqueue", None, made, end=end)
        for action, is_delayed in (("join", False), ("join_later", True)):
            joined = [
                (result.message_id, message.group_key)
                for result, message in zip(sent, batch, strict=True)
                if result.outcome == "enqueued"
                and message.group_key is not None
                and _comes_later(message) == is_delayed
            ]
            if joined:
                self.log(start, action, None, joined, end=end)
        waits = [
            (result.message_id, " ".join(map(str, [message.on_predecessor_dead, *predecessors])))
            for result, message in zip(sent, batch, strict=True)
            if result.outcome == "enqueued"
            and (predecessors := self._predecessors(message, [one.message_id for one in sent]))
        ]
        if waits:
            self.log(start, "wait", None, waits, end=end)
        for result, message in zip(sent, batch, strict=True):
            if result.outcome == "enqueued" and (after := message.expire_seconds) is not None:
                due = [(result.message_id, "expiring")]
                self.log(start + after, "expiring", None, due, end=end + after)

    def _send(self, batch: Sequence[NewMessage]) -> Sequence[BatchEnqueued]:
        return self.queue.enqueue_batch(self.run.queue_name, batch)

    def _hold(self, batch: Sequence[NewMessage]) -> Sequence[BatchEnqueued]:
        """Enqueue in a transaction that stays open for some time; return nothing if it was lost."""
        dialect = dialect_of(self.connection)
        dialect.begin(self.connection)
        try:
            sent = self._send(batch)
            self.run.stop.wait(self.seeded_random.uniform(0, 0.05))
        except Exception as error:
            if self.is_lost(error) or not self._engine.is_transient(error):
                raise
            self.connection.rollback()
            self.run.deadlocks.append(self.name)
            return []
        if self.seeded_random.random() < 0.5:
            dialect.rollback(self.connection)
            return []
        dialect.commit(self.connection)
        return sent

    def _waiting(self, message: NewMessage, place: int) -> NewMessage:
        """Give a message of a batch predecessors, from the batch or enqueued before."""
        seeded_random = self.seeded_random
        positions = seeded_random.sample(range(1, place + 1), min(place, 2))
        known = seeded_random.sample(self.sent, min(len(self.sent), 2))
        return replace(
            message,
            predecessor_positions=positions if seeded_random.random() < 0.5 else None,
            predecessor_ids=known if seeded_random.random() < 0.5 else None,
            on_predecessor_dead=seeded_random.choice(["hold", "continue", "fail"]),
        )

    def _predecessors(self, message: NewMessage, sent: Sequence[int]) -> list[int]:
        """Return the ids of a batch message's predecessors."""
        positions = message.predecessor_positions or ()
        return [sent[place - 1] for place in positions] + list(message.predecessor_ids or ())

    def _size(self) -> int:
        return self.seeded_random.choice(
            [1, 1, self.seeded_random.randint(1, 3 * self.run.largest_batch)]
        )

    def _message(self) -> NewMessage:
        seeded_random = self.seeded_random
        return NewMessage(
            data=self.name,
            priority=seeded_random.choice([1, 5, 5, 5, 9]),
            delay_seconds=seeded_random.uniform(0, 0.5) if seeded_random.random() < 0.1 else None,
            dedup_key=f"key {seeded_random.randint(1, 200)}"
            if seeded_random.random() < 0.05
            else None,
            group_key=f"group {seeded_random.randint(1, self.run.groups)}"
            if self.run.groups and seeded_random.random() < 0.9
            else None,
            expire_seconds=seeded_random.choice([0.05, 0.5, LONGEST_LIFE])
            if self.run.expires and seeded_random.random() < 0.3
            else None,
        )


def _comes_later(message: NewMessage) -> bool:
    """Return whether a message joins its group later, when it is due or resumed."""
    return bool(
        message.delay_seconds is not None
        or message.predecessor_ids
        or message.predecessor_positions
    )


class Maintainer(Actor):
    """Calls all maintenance routines, and resets some dead messages."""

    def act(self) -> bool:
        queue, name = self.queue, self.run.queue_name
        self.seeded_random.choice(
            [
                lambda: queue.maintain(name),
                lambda: queue.maintain(name, self.seeded_random.randint(1, 100)),
                lambda: queue.reap(name, self.seeded_random.randint(1, 100)),
                lambda: queue.promote(name, self.seeded_random.randint(1, 100)),
                lambda: queue.archive(name),
                lambda: queue.queue_stats(name),
                self._reset,
                *([self._alter] if len(self.run.group_limits) > 1 else []),
                *([self._purge] if self._may_purge() else []),
            ]
        )()
        return False

    def _alter(self) -> None:
        limit = self.seeded_random.choice(self.run.group_limits)
        self.queue.alter_queue(self.run.queue_name, group_limit=limit)

    def _may_purge(self) -> bool:
        """Return whether the run's only purge is still to come.

        With two purges, or with expiry, it is unknown which of them removed a message.
        """
        run = self.run
        is_attributable = run.purge is None and not run.expires
        return run.stirs and is_attributable and run.recorder.completed > MOST_PURGED

    def _purge(self) -> None:
        start = self.now()
        removed = None
        try:
            removed = self.queue.purge_queue(
                self.run.queue_name, include_dead=True, max_messages=MOST_PURGED
            ).removed
        finally:
            self.run.purge = Purge(start, self.now(), removed)

    def _reset(self) -> None:
        start = self.now()
        outcomes = self.call(
            "reset", lambda: self.queue.reset(self.run.queue_name, max_messages=20)
        )
        self.log(
            start, "reset", None, [(outcome.message_id, outcome.outcome) for outcome in outcomes]
        )


class Killer(Actor):
    """Kills random sessions of consumers."""

    def act(self) -> bool:
        victims = [name for name in self.run.alive if name.startswith(("consumer", "transaction"))]
        if victims:
            session = self.run.alive.get(self.seeded_random.choice(victims))
            if session is not None:
                self.run.server.kill_session(session)
        self.run.stop.wait(self.seeded_random.uniform(0.05, 0.3))
        return True
