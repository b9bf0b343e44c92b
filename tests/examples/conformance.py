"""A worker in another language beside a Python worker, with faults, and a check of the history.

The history is rowq's own (history_days), independent of both workers.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import rowq
from rowq.engines import engine_for_connection
from tests.concurrency.checker import check
from tests.concurrency.history import Event, write
from tests.engines.base import Connection, Server, wait_until
from tests.examples.outside_worker import LEASE_SECONDS, OutsideWorker
from tests.examples.programs import Programs
from tests.helpers.dialects import dialect_of
from tests.helpers.worker_queue import WorkerQueue
from tests.helpers.workers import running

MESSAGES = 1000
SETTINGS: dict[str, Any] = {
    "lease_seconds": LEASE_SECONDS,
    "backoff_base_seconds": 0.1,
    "history_days": 1,
}
_SLOW_SECONDS = 1.5 * LEASE_SECONDS
_PYTHON = "the Python worker"
_CALL_ENDS_SECONDS = 0.2
_LARGEST_BATCH = 10
_ACTIONS = {
    "completed": "complete",
    "retrying": "retry_later",
    "dead": "fail_now",
    "released": "release",
    "lease_expired": "expire",
}
_OTHERS = {
    "postgres": "select pid, pg_backend_pid() from pg_stat_activity"
    " where datname = current_database() and pid <> pg_backend_pid()",
    "mysql": "select id, connection_id() from information_schema.processlist"
    " where id <> connection_id() and db = database()",
}
"""By engine, the other sessions of the database, each with the own session's number."""
_ATTEMPTS = """
    select h.message_id, h.attempt, h.claim_id, h.worker_name, h.leased_at, h.ended_at, h.outcome
    from rowq.history h
    join rowq.queue q on q.queue_id = h.queue_id
    where q.queue_name = %s and h.message_id > 0
    """
"""The attempts of a queue. Rows of a message 0 bound it on MariaDB and MySQL."""
_CALL_SECONDS = {"postgres": 0.0, "mysql": 0.5}
"""How much earlier than the lease a dequeue may begin: MariaDB's clock stops in a procedure."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An ended attempt in the history; times are Unix seconds."""

    message_id: int
    attempt: int
    claim_id: int
    worker_name: str
    leased_at: float
    ended_at: float
    outcome: str


@dataclass
class Conformance:
    """A run of one language.

    orders: the order of each message. handled: messages that the Python worker has handled.
    allowed: how many it may handle, to leave some for a slow worker.
    done: messages and attempts printed by the other worker. breaks: interruptions, after which it
    may not have printed completions. since: claims up to this id are lost.
    """

    queue: WorkerQueue
    connection: Connection
    server: Server
    programs: Programs
    directory: Path
    orders: dict[int, int] = field(default_factory=dict)
    handled: list[int] = field(default_factory=list)
    allowed: int = 0
    done: list[tuple[int, int]] = field(default_factory=list)
    breaks: int = 0
    since: int = 0

    def perform(self) -> None:
        """Run for about eight seconds, and check the history."""
        share = MESSAGES // 3
        self._abandon_one()
        with self._worker() as worker:
            slow, failing = self._let_it_work_alone(worker)
            with running(self._python_worker()):
                self._fill(share)
                self._see_it_work(worker)
                self._cut_connections()
                self._fill(share)
                self._see_it_work(worker)
                held = self._kill_while_it_holds(worker)
                with self._worker() as again:
                    self._fill(MESSAGES - len(self.orders))
                    self._see_it_work(again)
                    self._stop(again)
                self.allowed = MESSAGES
                with self._worker() as at_last:
                    self._wait_until_all_is_done()
                    self._stop(at_last)
        attempts = self._attempts()
        self._check_history(attempts)
        self._check_output(attempts)
        ends = {(one.message_id, one.attempt): one for one in attempts}
        assert ends[slow, 1].outcome == "completed"
        assert ends[slow, 1].ended_at - ends[slow, 1].leased_at >= _SLOW_SECONDS
        assert [ends[failing, attempt].outcome for attempt in (1, 2)] == ["retrying", "completed"]
        assert sum(one.outcome == "lease_expired" for one in attempts) >= held

    def _worker(self) -> OutsideWorker:
        return OutsideWorker(self.programs, self.queue.name, self.directory / "worker.log")

    def _python_worker(self) -> rowq.Worker:
        """Return a worker that leaves messages for the other one."""

        def handle(message: rowq.HeldMessage) -> rowq.Retry | None:
            message.is_stopping(within_seconds=0.005)
            while len(self.handled) >= self.allowed:
                if message.is_stopping(within_seconds=0.01):
                    break
            if message.data["fail"] and message.attempt == 1:
                return rowq.Retry(error="it fails at its first attempt")
            self.handled.append(message.message_id)
            return None

        return self.queue.worker(handle, worker_name=_PYTHON, batch_size=5)

    def _abandon_one(self) -> None:
        """Let the lease of a message expire, for maintain."""
        self._enqueue({"fail": 0})
        assert self.queue.dequeue_fast(worker_name="a worker that is gone", lease_seconds=1)

    def _let_it_work_alone(self, worker: OutsideWorker) -> tuple[int, int]:
        """Let it handle a slow and a failing message; return both."""
        slow, failing, *_ = self._enqueue(
            {"fail": 0, "seconds": _SLOW_SECONDS}, {"fail": 1}, *[{"fail": 0}] * 8
        )
        worker.wait_until_done(len(self.orders))
        return slow, failing

    def _see_it_work(self, worker: OutsideWorker) -> None:
        worker.wait_until_done(len(worker.done) + 3 * _LARGEST_BATCH // 2)

    def _fill(self, count: int) -> None:
        """Enqueue messages; the Python worker may handle half of them."""
        self._enqueue(*({"fail": int(number % 10 == 0)} for number in range(count)))
        self.allowed = len(self.handled) + count // 2

    def _enqueue(self, *bodies: dict[str, Any]) -> list[int]:
        first = len(self.orders) + 1
        messages = [{"order": first + index, **body} for index, body in enumerate(bodies)]
        sent = self.queue.enqueue_batch([rowq.NewMessage(data=message) for message in messages])
        ids = [message.message_id for message in sent]
        self.orders |= dict(zip(ids, range(first, first + len(ids)), strict=True))
        return ids

    def _cut_connections(self) -> None:
        """End all other sessions of the database."""
        statement = _OTHERS[engine_for_connection(self.connection).name]
        sessions = dialect_of(self.connection).execute(self.connection, statement).fetchall()
        assert len(sessions) >= 2
        own = self.server.session_id(self.connection)
        for session, own_number in sessions:
            self.server.kill_session(own + session - own_number)
        self._record_break()

    def _kill_while_it_holds(self, worker: OutsideWorker) -> int:
        """Kill the worker while it holds messages; return how many it held at its end.

        A running call may still complete a batch and lease the next one.
        """

        def holds() -> bool:
            worker.pause()
            if self._held() > 1:
                return True
            worker.resume()
            return False

        wait_until(holds, "the worker holds messages")
        worker.kill()
        self.done += worker.done
        held, before = self._held(), -1
        while held != before:
            time.sleep(_CALL_ENDS_SECONDS)
            held, before = self._held(), held
        self._record_break()
        return held

    def _stop(self, worker: OutsideWorker) -> None:
        """Stop the worker, which releases its messages."""
        worker.stop()
        self.done += worker.done
        assert self._held() == 0

    def _held(self) -> int:
        """Return how many messages the other worker holds."""
        claims = self.queue.list_claims(after_claim_id=self.since)
        return sum(claim.message_count for claim in claims if claim.worker_name != _PYTHON)

    def _record_break(self) -> None:
        self.breaks += 1
        claims = self.queue.list_claims()
        self.since = max([self.since, *(claim.claim_id for claim in claims)])

    def _wait_until_all_is_done(self) -> None:
        wait_until(lambda: self.queue.counts() == (0, 0, 0, 0), "everything is done", 60)

    def _attempts(self) -> list[Attempt]:
        cursor = dialect_of(self.connection).execute(self.connection, _ATTEMPTS, [self.queue.name])
        return [
            Attempt(
                int(message_id),
                int(attempt),
                int(claim_id),
                worker_name,
                _seconds(leased_at),
                _seconds(ended_at),
                outcome,
            )
            for message_id, attempt, claim_id, worker_name, leased_at, ended_at, outcome in cursor
        ]

    def _check_history(self, attempts: list[Attempt]) -> None:
        """Check the history with the checker of the concurrency tests."""
        late = _CALL_SECONDS[engine_for_connection(self.connection).name]
        history = [Event(0, 0, "test", "enqueue", None, tuple((one, 5) for one in self.orders))]
        for one in attempts:
            who, began, ended = one.worker_name, one.leased_at, one.ended_at
            leased, outcome = ((one.message_id, one.attempt),), ((one.message_id, one.outcome),)
            history += [
                Event(
                    began,
                    began + late,
                    who,
                    "dequeue",
                    one.claim_id,
                    leased,
                    lease_seconds=ended - began,
                ),
                Event(ended, ended, who, _ACTIONS[one.outcome], one.claim_id, outcome),
            ]
        census = dialect_of(self.connection).census(self.connection, self.queue.name)
        end = max(event.end for event in history) + 1
        history.append(Event(end, end, "test", "census", None, tuple(census)))
        write(history, self.directory / "history.jsonl")
        faults = check(history)
        assert not faults, f"{len(faults)} faults in {self.directory}: {faults[:10]}"

    def _check_output(self, attempts: list[Attempt]) -> None:
        """Compare the workers' output with the history."""
        completed = [one for one in attempts if one.outcome == "completed"]
        assert Counter(one.message_id for one in completed) == Counter(list(self.orders))
        assert len(self.done) == len(set(self.done))
        others = {(one.message_id, one.attempt) for one in completed if one.worker_name != _PYTHON}
        assert set(self.done) <= others
        unsaid = others - set(self.done)
        assert len(unsaid) <= self.breaks * _LARGEST_BATCH
        total = sum(self.orders[one.message_id] for one in completed)
        said = sum(self.orders[message_id] for message_id, _ in [*self.done, *unsaid])
        by_python = {one.message_id for one in completed if one.worker_name == _PYTHON}
        assert by_python <= set(self.handled)
        assert said + sum(self.orders[message_id] for message_id in by_python) == total
        assert total == MESSAGES * (MESSAGES + 1) // 2
        assert by_python


def _seconds(at: datetime) -> float:
    """Return a time of the database in Unix seconds; without a zone it is UTC."""
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
