"""A scheduler as a process of seed 004 runs it: a poller, and executors that wait for its finds."""

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from benchmarks.harness.session import Row, Session, Value
from benchmarks.harness.team import Gate
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.sections import read_sections
from benchmarks.studies.seeds.seed_004.tally import Crew, Size, Tally, patiently, server_cpu

SQL_FILE = "scheduler.sql"
_PAUSE = 0.01


def schedule(
    dialect: Dialect, url: str, size: Size, optimistic: bool, who: str, gate: Gate
) -> Tally:
    """Run a poller and its executors until the time is up or nothing is due.

    optimistic: the poller only reads, and each executor picks, by version, what it is to execute;
    what a newer fetch replaces is dropped. Else the poller picks what it fetches, under locks.
    """
    scheduler = _Scheduler(dialect, size, who, optimistic=optimistic)
    with ExitStack() as stack:
        poller = stack.enter_context(dialect.open(url))
        sessions = [stack.enter_context(dialect.open(url)) for _ in range(size.threads)]
        scheduler.warm_up(poller, sessions)
        before = server_cpu([poller, *sessions])
        crew = Crew([partial(scheduler.execute, session) for session in sessions])
        end = gate.wait() + size.seconds
        crew.start()
        try:
            fetches = scheduler.poll(poller, end)
        finally:
            scheduler.stop()
        total = crew.join()
        total.server_cpu = server_cpu([poller, *sessions]) - before
    total.add(fetches)
    return total


@dataclass(frozen=True, slots=True)
class _Candidate:
    generation: int
    instance: str
    version: int


class _Scheduler:
    """A scheduler: the state that a poller and its executors share."""

    def __init__(self, dialect: Dialect, size: Size, who: str, *, optimistic: bool) -> None:
        self._sql = read_sections(Path(__file__).parent / dialect.name / SQL_FILE)
        self._size = size
        self._who = who
        self._optimistic = optimistic
        self._todo: SimpleQueue[_Candidate | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._refill = threading.Event()
        self._generation = 0
        self._left = 0
        self._over = False

    def warm_up(self, poller: Session, sessions: list[Session]) -> None:
        """Have the server prepare the statements; nothing is picked."""
        self._fetch(poller, 0)
        for session in sessions:
            for section in ("pick", "remove"):
                self._change(session, Tally(), section, "", 0)

    def poll(self, session: Session, end: float) -> Tally:
        """Fetch whenever a third of a batch is left."""
        tally = Tally()
        while time.monotonic() < end:
            self._refill.clear()
            wanted = self._size.batch - (0 if self._optimistic else self._left)
            rows = patiently(partial(self._fetch, session, wanted), session, tally)
            tally.fetches += 1
            if not rows and self._left == 0:
                break
            if rows:
                self._hand_out(rows)
            while not self._refill.wait(_PAUSE) and time.monotonic() < end and self._left:
                pass
        return tally

    def stop(self) -> None:
        """Let the executors end after what they are at."""
        self._over = True
        for _ in range(self._size.threads):
            self._todo.put(None)

    def execute(self, session: Session) -> Tally:
        """Execute what the poller hands out; there is nothing to do for an execution."""
        tally = Tally()
        while (candidate := self._todo.get()) is not None and not self._over:
            if candidate.generation != self._generation:
                tally.stale += 1
                continue
            self._execute_one(session, candidate, tally)
            with self._lock:
                self._left -= candidate.generation == self._generation
                if self._left <= self._size.low:
                    self._refill.set()
        return tally

    def _fetch(self, session: Session, wanted: int) -> list[Row]:
        if self._optimistic:
            return session.run(self._sql["fetch"], batch=wanted)
        if "lock_and_fetch" in self._sql:
            return session.run(self._sql["lock_and_fetch"], who=self._who, batch=wanted)
        session.run("begin")
        rows = session.run(self._sql["lock"], batch=wanted)
        if rows:
            # Instances are texts made of digits, and are compared as texts: numbers would not use
            # the index.
            instances = ", ".join(f"'{int(row[0] or 0)}'" for row in rows)
            session.run(self._sql["mark"].replace(":instances", instances), who=self._who)
        session.run("commit")
        return rows

    def _hand_out(self, rows: list[Row]) -> None:
        with self._lock:
            if self._optimistic:
                self._generation += 1
                self._left = 0
            self._left += len(rows)
            generation = self._generation
        for row in rows:
            self._todo.put(_Candidate(generation, (row[0] or b"").decode(), int(row[1] or 0)))

    def _execute_one(self, session: Session, candidate: _Candidate, tally: Tally) -> None:
        instance, version = candidate.instance, candidate.version
        if self._optimistic:
            if not self._change(session, tally, "pick", instance, version):
                tally.misses += 1
                return
            version += 1
        if self._change(session, tally, "remove", instance, version) != 1:
            raise RuntimeError(f"execution {instance} was picked twice")
        tally.handled.append(int(instance))
        tally.last = time.monotonic()

    def _change(
        self, session: Session, tally: Tally, section: str, instance: str, version: int
    ) -> int:
        """Run a statement that changes one execution or none; return how many."""
        values: dict[str, Value] = {"instance": instance, "version": version, "who": self._who}
        patiently(lambda: session.run(self._sql[section], **values), session, tally)
        return session.affected
