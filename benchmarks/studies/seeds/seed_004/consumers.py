"""rowq's consumers, as a process of seed 004 runs them."""

import time
from contextlib import ExitStack
from functools import partial

from benchmarks.harness.session import Session
from benchmarks.harness.team import Gate
from benchmarks.studies.seeds.client import rowq_file
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.sections import read_sections
from benchmarks.studies.seeds.seed_004.tally import Crew, Size, Tally, server_cpu


def consume(dialect: Dialect, url: str, size: Size, single: bool, gate: Gate) -> Tally:
    """Let threads take claims and complete them until the time is up or nothing is ready.

    single: message by message, each in a transaction of its own; else the whole claim in one call.
    """
    with ExitStack() as stack:
        sessions = [stack.enter_context(dialect.open(url)) for _ in range(size.threads)]
        consumers = [_Consumer(dialect, session, size.batch) for session in sessions]
        for consumer in consumers:
            consumer.warm_up()
        before = server_cpu(sessions)
        end = gate.wait() + size.seconds
        crew = Crew([partial(consumer.run, end, single) for consumer in consumers])
        crew.start()
        total = crew.join()
        total.server_cpu = server_cpu(sessions) - before
    return total


class _Consumer:
    """One thread with its own session."""

    def __init__(self, dialect: Dialect, session: Session, batch: int) -> None:
        self._sql = read_sections(rowq_file(dialect.name))
        self._session = session
        self._batch = batch
        self._end = float("inf")
        self._tally = Tally()

    def warm_up(self) -> None:
        """Have the server compile the routines for this session; the two messages do not count."""
        for finish in (self._complete_each, self._complete_all):
            rows = self._session.run(self._sql["dequeue"], batch=1)
            finish(int(rows[0][0] or 0), [int(row[1] or 0) for row in rows])
        self._tally = Tally()

    def run(self, end: float, single: bool) -> Tally:
        """Take and complete until the time is up or nothing is ready."""
        self._end = end
        finish = self._complete_each if single else self._complete_all
        while time.monotonic() < self._end:
            self._tally.fetches += 1
            rows = self._session.run(self._sql["dequeue"], batch=self._batch)
            if not rows:
                break
            finish(int(rows[0][0] or 0), [int(row[1] or 0) for row in rows])
        return self._tally

    def _complete_each(self, claim: int, messages: list[int]) -> None:
        for message in messages:
            if time.monotonic() >= self._end:
                return
            done = self._session.run(self._sql["complete_one"], claim=claim, message=message)
            self._note(done, [message])

    def _complete_all(self, claim: int, messages: list[int]) -> None:
        self._note(self._session.run(self._sql["complete"], claim=claim), messages)

    def _note(self, done: list[tuple[bytes | None, ...]], messages: list[int]) -> None:
        if [row[-1] for row in done] != [b"completed"] * len(messages):
            raise RuntimeError("a message of a live claim was not completed")
        self._tally.handled += messages
        self._tally.last = time.monotonic()
