"""What each process does in seed 004: a poller with its executors, or rowq's consumers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from benchmarks.rowq_bench.seeds import rowq_calls
from benchmarks.rowq_bench.seeds.scheduler_sql import Statements, statements_of
from benchmarks.rowq_bench.seeds.session import Session, StatementError, Value, open_session
from benchmarks.rowq_bench.seeds.team import Gate

_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class Size:
    """How a process works.

    batch: executions per fetch. threads: executors. seconds: when to stop, if not empty before.
    The poller fetches again when a third of a batch is left.
    """

    batch: int
    threads: int
    seconds: float

    @property
    def low(self) -> int:
        """How many executions may be left when the poller fetches again."""
        return self.batch // 3


@dataclass(slots=True)
class Tally:
    """What a process did: the executions it handled, and the moment of the last.

    fetches: statements that asked for work. misses: picks that another process had been first to.
    stale: candidates dropped unpicked, because a newer fetch had replaced them.
    deadlocks: statements or transactions tried again after one.
    """

    handled: list[int] = field(default_factory=list)
    last: float = 0
    fetches: int = 0
    misses: int = 0
    stale: int = 0
    deadlocks: int = 0

    def add(self, other: Tally) -> None:
        """Add what another thread did."""
        self.handled += other.handled
        self.last = max(self.last, other.last)
        self.fetches += other.fetches
        self.misses += other.misses
        self.stale += other.stale
        self.deadlocks += other.deadlocks


@dataclass(frozen=True, slots=True)
class _Candidate:
    generation: int
    instance: str
    version: int


class _Scheduler:
    """One poller and its executors; optimistic: executors pick, one by one, what was fetched."""

    def __init__(self, url: str, who: str, size: Size, *, optimistic: bool) -> None:
        self._url = url
        self._who = who
        self._size = size
        self._optimistic = optimistic
        self._sql: Statements = statements_of(url)
        self._todo: SimpleQueue[_Candidate | None] = SimpleQueue()
        self._generation = 0
        self._left = 0
        self._lock = threading.Lock()
        self._refill = threading.Event()
        self._over = False

    def run(self, gate: Gate) -> Tally:
        """Work until the time is up or nothing is due any more."""
        own = Tally()
        with ExitStack() as stack:
            poller = stack.enter_context(open_session(self._url))
            crew = _Crew(
                [
                    partial(self._execute, stack.enter_context(open_session(self._url)))
                    for _ in range(self._size.threads)
                ]
            )
            end = gate.wait() + self._size.seconds
            crew.start()
            try:
                self._poll(poller, end, own)
            finally:
                self._over = True
                for _ in range(self._size.threads):
                    self._todo.put(None)
            for tally in crew.join():
                own.add(tally)
        return own

    def _poll(self, session: Session, end: float, tally: Tally) -> None:
        while time.monotonic() < end:
            self._refill.clear()
            wanted = self._size.batch if self._optimistic else self._size.batch - self._left
            fetch = self._fetch_due if self._optimistic else self._lock_and_fetch
            found = patiently(partial(fetch, session, wanted), session, tally)
            tally.fetches += 1
            if not found and self._left == 0:
                return
            if found:
                self._hand_out(found)
            while not self._refill.wait(_PAUSE) and time.monotonic() < end:
                pass

    def _hand_out(self, found: list[tuple[str, int]]) -> None:
        with self._lock:
            if self._optimistic:
                self._generation += 1
                self._left = len(found)
            else:
                self._left += len(found)
            generation = self._generation
        for instance, version in found:
            self._todo.put(_Candidate(generation, instance, version))

    def _fetch_due(self, session: Session, wanted: int) -> list[tuple[str, int]]:
        rows = session.run(self._sql.fetch, wanted)
        return [((row[0] or b"").decode(), int(row[1] or b"0")) for row in rows]

    def _lock_and_fetch(self, session: Session, wanted: int) -> list[tuple[str, int]]:
        if self._sql.lock_and_fetch:
            rows = session.run(self._sql.lock_and_fetch, self._who, wanted)
        else:
            session.run("begin")
            rows = session.run(self._sql.lock, wanted)
            if rows:
                marks = ", ".join(["?"] * len(rows))
                instances = [(row[0] or b"").decode() for row in rows]
                session.run(self._sql.mark.format(marks), self._who, *instances)
            session.run("commit")
        return [((row[0] or b"").decode(), int(row[1] or b"0")) for row in rows]

    def _execute(self, session: Session) -> Tally:
        tally = Tally()
        while (candidate := self._todo.get()) is not None and not self._over:
            if candidate.generation != self._generation:
                tally.stale += 1
                continue
            self._execute_one(session, candidate, tally)
            with self._lock:
                if candidate.generation == self._generation:
                    self._left -= 1
                if self._left <= self._size.low:
                    self._refill.set()
        return tally

    def _execute_one(self, session: Session, candidate: _Candidate, tally: Tally) -> None:
        version = candidate.version
        if self._optimistic:
            pick = (self._sql.pick, self._who, candidate.instance, version)
            if _change(session, tally, *pick) == 0:
                tally.misses += 1
                return
            version += 1
        if _change(session, tally, self._sql.remove, candidate.instance, version) != 1:
            raise RuntimeError(f"{candidate.instance} was picked by two")
        tally.handled.append(int(candidate.instance))
        tally.last = time.monotonic()


class _Crew:
    """Threads that begin when told to."""

    def __init__(self, works: list[Callable[[], Tally]]) -> None:
        self._tallies: list[Tally] = []
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> list[Tally]:
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return self._tallies

    def _run(self, work: Callable[[], Tally]) -> None:
        try:
            self._tallies.append(work())
        except Exception as error:
            self._errors.append(error)
