"""Passes messages through a queue, step by step, and measures each step."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg

from benchmarks.engines.postgres.session import PostgresSession
from benchmarks.harness.closing import Closing
from benchmarks.studies.features.meter import TRACK, Cost, Meter

PUT, TAKE, KEEP = "put in", "dequeue and complete", "maintain"
STEPS = (PUT, TAKE, KEEP)

Steps = list[tuple[str, Callable[[int], None]]]
"""Steps by name, each with what does it for so many messages."""

_WARM_UP = 10
_TABLES = """
    select string_agg(format('%%I.%%I', n.nspname, c.relname), ', ')
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname = %s
"""
_Found = TypeVar("_Found")


class Course(Closing):
    """A session that passes messages, and another that measures and cleans up.

    name: of the feature or the other queue. batch: messages of a call, where a call can have
    several. schema: of its tables. leftovers: statements that take away what a turn leaves behind.
    """

    leftovers: tuple[str, ...] = ()

    def __init__(self, name: str, batch: int, schema: str, url: str, backend: int) -> None:
        self.name = name
        self.batch = batch
        self.unit = batch
        self.control = psycopg.connect(url, autocommit=True)
        self.meter = Meter(self.control, backend)
        self._schema = schema

    def close(self) -> None:
        """Close the session that measures."""
        self.control.close()

    @abstractmethod
    def steps(self) -> Steps:
        """Return the steps that a message goes, in their order."""

    @abstractmethod
    def track(self, *, on: bool) -> None:
        """Have the statements of the session counted, or not."""

    def warm_up(self) -> None:
        """Let some messages pass, so that plans are made."""
        for _, work in self.steps():
            work(self._whole(_WARM_UP))

    def turn(self, messages: int) -> dict[str, dict[str, float]]:
        """Pass messages twice, against the clock and counted; return the cost of one by step."""
        whole = self._whole(messages)
        used = dict(self._pass(whole, Meter.used, on=False))
        counts = dict(self._pass(whole, Meter.counted, on=True))
        return {step: Cost(*counts[step], *used[step]).each(whole) for step in used}

    def _whole(self, messages: int) -> int:
        """Return about so many messages: as many as whole calls have."""
        return max(messages // self.unit, 1) * self.unit

    def _pass(
        self, messages: int, read: Callable[[Meter], _Found], *, on: bool
    ) -> Iterator[tuple[str, _Found]]:
        self._clean()
        self.warm_up()
        self.track(on=on)
        for step, work in self.steps():
            self.meter.start()
            work(messages)
            yield step, read(self.meter)
        self.track(on=False)

    def _clean(self) -> None:
        """Take away what is left over, with all dead rows, so that every pass begins alike."""
        for statement in self.leftovers:
            self.control.execute(statement.encode())
        row = self.control.execute(_TABLES, [self._schema]).fetchone()
        assert row is not None
        self.control.execute(f"vacuum (analyze, truncate off) {row[0]}".encode())


class SessionCourse(Course):
    """A course whose session is here."""

    def __init__(self, name: str, batch: int, schema: str, url: str) -> None:
        self.session = PostgresSession(url)
        super().__init__(name, batch, schema, url, self.session.backend)

    def close(self) -> None:
        """Close both sessions."""
        self.session.close()
        super().close()

    def track(self, *, on: bool) -> None:
        """Have the statements of the session counted, or not."""
        self.session.script(TRACK[on])
