"""The sessions of a run: each does as its dice say, and writes down what it did."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowq import Message, NewMessage, Queue, StaleClaim
from rowq.engines import engine_for_connection
from tests.concurrency.history import Recorder
from tests.engines.base import Connection, Server
from tests.stored_times import expire_claim

LEASE_SECONDS = 300


class SessionLost(Exception):  # noqa: N818 - it reads as what it says
    """The session was killed while a call was on its way."""


@dataclass
class Run:
    """What the sessions of one run share.

    stop: set when they are to come to an end. producing: how many producers are still at it.
    """

    server: Server
    url: str
    queue_name: str
    recorder: Recorder
    largest_batch: int = 100
    stop: threading.Event = field(default_factory=threading.Event)
    alive: dict[str, int] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)


class Actor:
    """One session, with a thread, a name, and dice of its own.

    Subclasses say in `act` what it does in one turn, and return whether there was anything to do.
    """

    def __init__(self, run: Run, name: str, seed: int) -> None:
        self.run = run
        self.name = name
        self.dice = random.Random(f"{seed} {name}")
        self.connection: Connection = None
        self._connect()
        self.thread = threading.Thread(target=self._live, name=name)

    def act(self) -> bool:
        """Take a turn."""
        raise NotImplementedError

    def finished(self) -> bool:
        """Return whether this session has done its part."""
        return self.run.stop.is_set()

    def call(
        self, action: str, function: Callable[[], Any], claim_id: int | None = None, **what: Any
    ) -> Any:
        """Make a call; if the session is lost in it, note that its effect is unknown."""
        start = self.run.recorder.clock()
        try:
            return function()
        except Exception as error:
            if not self.is_lost(error):
                raise
            self.run.recorder.record(start, self.name, action, claim_id, known=False, **what)
            raise SessionLost from error

    def note(self, start: float, action: str, *args: Any, **what: Any) -> None:
        """Write down what was done."""
        self.run.recorder.record(start, self.name, action, *args, **what)

    def now(self) -> float:
        """Return the moment by the clock of the history."""
        return self.run.recorder.clock()

    def is_lost(self, error: Exception) -> bool:
        """Return whether an error says that this session is gone."""
        return engine_for_connection(self.connection).is_connection_lost(error)

    def _connect(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = self.run.server.connect(self.run.url)
        self.queue = Queue(self.connection)
        self.run.alive[self.name] = self.run.server.session_id(self.connection)

    def _live(self) -> None:
        try:
            while not self.finished():
                try:
                    busy = self.act()
                except SessionLost:
                    self._connect()
                else:
                    if not busy:
                        self.run.stop.wait(self.dice.uniform(0.001, 0.02))
        except BaseException as error:
            self.run.errors.append(error)
            self.run.stop.set()
        finally:
            self.run.alive.pop(self.name, None)
            with contextlib.suppress(Exception):
                self.connection.close()


class Producer(Actor):
    """Enqueues so many messages, one by one and in batches, some delayed, some with a key."""

    def __init__(self, run: Run, name: str, seed: int, messages: int) -> None:
        super().__init__(run, name, seed)
        self.left = messages

    def finished(self) -> bool:
        return self.left <= 0 or super().finished()

    def act(self) -> bool:
        batch = [self._message() for _ in range(min(self.left, self._size()))]
        start = self.now()
        sent = self.queue.enqueue_batch(self.run.queue_name, batch)
        made = [
            (one.message_id, message.priority)
            for one, message in zip(sent, batch, strict=True)
            if one.outcome == "enqueued"
        ]
        self.note(start, "enqueue", None, made)
        self.left -= len(made)
        if made and self.dice.random() < 0.05:
            self._cancel([message for message, _ in self.dice.choices(made, k=3)])
        return True

    def _size(self) -> int:
        return self.dice.choice([1, 1, self.dice.randint(1, 3 * self.run.largest_batch)])

    def _message(self) -> NewMessage:
        dice = self.dice
        return NewMessage(
            data=self.name,
            priority=dice.choice([1, 5, 5, 5, 9]),
            delay_seconds=dice.uniform(0, 0.5) if dice.random() < 0.1 else None,
            dedup_key=f"key {dice.randint(1, 200)}" if dice.random() < 0.05 else None,
        )

    def _cancel(self, messages: Sequence[int]) -> None:
        start = self.now()
        outcomes = self.queue.cancel(self.run.queue_name, sorted(set(messages)))
        self.note(start, "cancel", None, [(one.message_id, one.outcome) for one in outcomes])


class Consumer(Actor):
    """Leases batches of all sizes and finishes them in every way, or late, or not at all.

    late: claims that have run out, and are finished some turns later all the same.
    """

    def __init__(self, run: Run, name: str, seed: int) -> None:
        super().__init__(run, name, seed)
        self.late: list[tuple[int, list[int]]] = []

    def act(self) -> bool:
        if self.late and self.dice.random() < 0.3:
            self.finish(self._how(), *self.late.pop())
        messages = self.dequeue()
        if not messages:
            return False
        claim_id = messages[0].claim_id
        try:
            self._handle(claim_id, messages)
        except SessionLost:
            self._connect()
            self.expire(claim_id)
        return True

    def dequeue(self) -> list[Message]:
        """Lease a batch and write it down."""
        start = self.now()
        size = self.dice.choice([1, self.dice.randint(1, self.run.largest_batch)])
        messages: list[Message] = self.call(
            "dequeue",
            lambda: self.queue.dequeue_fast(
                self.run.queue_name, size, worker_name=self.name, lease_seconds=LEASE_SECONDS
            ),
        )
        if messages:
            leased = [(message.message_id, message.attempt) for message in messages]
            claim_id = messages[0].claim_id
            self.note(start, "dequeue", claim_id, leased, lease_seconds=LEASE_SECONDS)
        return messages

    def expire(self, claim_id: int) -> None:
        """Let a claim run out as if its time had passed."""
        start = self.now()
        self.call("expire", lambda: expire_claim(self.connection, claim_id), claim_id)
        self.note(start, "expire", claim_id)

    def _handle(self, claim_id: int, messages: Sequence[Message]) -> None:
        ids = [message.message_id for message in messages]
        luck = self.dice.random()
        if luck < 0.04:
            self.expire(claim_id)  # and never comes back
        elif luck < 0.12:
            self.expire(claim_id)
            self.late.append((claim_id, ids))
        elif luck < 0.60:
            self.finish("complete", claim_id, ids)
        else:
            self._finish_in_parts(claim_id, ids)

    def _finish_in_parts(self, claim_id: int, ids: list[int]) -> None:
        self.dice.shuffle(ids)
        while ids:
            if self.dice.random() < 0.2:
                self._extend(claim_id)
            cut = self.dice.randint(1, len(ids))
            self.finish(self._how(), claim_id, ids[:cut])
            ids = ids[cut:]

    def _how(self) -> str:
        ways = ("complete", "retry_later", "release", "fail_now")
        return self.dice.choices(ways, (70, 20, 8, 2))[0]

    def _extend(self, claim_id: int) -> None:
        start = self.now()
        with contextlib.suppress(StaleClaim):
            self.call(
                "extend_lease",
                lambda: self.queue.extend_lease(self.run.queue_name, claim_id),
                claim_id,
            )
            self.note(start, "extend_lease", claim_id, lease_seconds=LEASE_SECONDS)

    def finish(self, action: str, claim_id: int, ids: Sequence[int]) -> None:
        """Finish some messages of a claim and write down what became of each."""
        start = self.now()
        options = {"delay_seconds": self.dice.choice([0, 0.1])} if action == "retry_later" else {}
        routine = getattr(self.queue, action)
        hoped = {"complete": "completed", "fail_now": "dead"}.get(action, action)
        outcomes = self.call(
            action,
            lambda: routine(self.run.queue_name, claim_id, ids, **options),
            claim_id,
            results=[(one, hoped) for one in ids],
        )
        self.note(start, action, claim_id, [(one.message_id, one.outcome) for one in outcomes])


class TransactionalConsumer(Consumer):
    """Dequeues, does the effect and completes in one transaction; some are rolled back.

    It is written down when it has ended: a killed session gives back at once, and who has the
    messages then may be first to say so.
    """

    def act(self) -> bool:
        try:
            return self._transact()
        except Exception as error:
            if not self.is_lost(error):
                raise
            self.note(self.now(), "dequeue", known=False)
            self._connect()
            return True

    def _transact(self) -> bool:
        start = self.now()
        self.connection.execute("begin")
        size = self.dice.randint(1, self.run.largest_batch)
        messages = self.queue.dequeue_fast(
            self.run.queue_name, size, worker_name=self.name, lease_seconds=LEASE_SECONDS
        )
        end = self.now()
        if not messages:
            self.connection.execute("rollback")
            return False
        claim_id = messages[0].claim_id
        self._do_effects(claim_id, [message.message_id for message in messages])
        leased = [(message.message_id, message.attempt) for message in messages]
        done = [(message.message_id, "completed") for message in messages]
        ending = self.now()
        commits = self.dice.random() < 0.8
        try:
            self.connection.execute("commit" if commits else "rollback")
        except Exception:
            if commits:
                self.note(ending, "complete", claim_id, done, known=False)
            raise
        self.note(start, "dequeue", claim_id, leased, lease_seconds=LEASE_SECONDS, end=end)
        if commits:
            self.note(ending, "complete", claim_id, done)
        else:
            self.note(ending, "rollback", claim_id)
        return True

    def _do_effects(self, claim_id: int, ids: Sequence[int]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "insert into effect (queue_name, message_id) values (%s, %s)",
                [(self.run.queue_name, one) for one in ids],
            )
        outcomes = self.queue.complete(self.run.queue_name, claim_id)
        assert {one.outcome for one in outcomes} == {"completed"}


class Housekeeper(Actor):
    """Keeps house all the time, in every way, and brings some of the dead back."""

    def act(self) -> bool:
        queue, name = self.queue, self.run.queue_name
        self.dice.choice(
            [
                lambda: queue.maintain(name),
                lambda: queue.maintain(name, self.dice.randint(1, 100)),
                lambda: queue.reap(name, self.dice.randint(1, 100)),
                lambda: queue.promote(name, self.dice.randint(1, 100)),
                lambda: queue.archive(name),
                lambda: queue.queue_stats(name),
                self._reset,
            ]
        )()
        return False

    def _reset(self) -> None:
        start = self.now()
        outcomes = self.queue.reset(self.run.queue_name, max_messages=20)
        self.note(start, "reset", None, [(one.message_id, one.outcome) for one in outcomes])


class Killer(Actor):
    """Kills the sessions of consumers, whatever they are doing."""

    def act(self) -> bool:
        victims = [name for name in self.run.alive if name.startswith(("consumer", "transaction"))]
        if victims:
            session = self.run.alive.get(self.dice.choice(victims))
            if session is not None:
                self.run.server.kill_session(session)
        self.run.stop.wait(self.dice.uniform(0.05, 0.3))
        return True
