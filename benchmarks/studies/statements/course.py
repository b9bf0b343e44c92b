"""The calls that are counted, and how they are made on a server."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.mysql import lab as mysql
from benchmarks.engines.oracle import lab as oracle
from benchmarks.engines.postgres import lab as postgres
from benchmarks.engines.sqlserver import lab as sqlserver
from benchmarks.harness.runner import Lab, run_facts
from benchmarks.harness.session import Row, Session
from benchmarks.studies.seeds.base import rowq_form
from benchmarks.studies.seeds.bodies import Bodies
from benchmarks.studies.seeds.client import rowq_file
from benchmarks.studies.seeds.sections import read_sections
from benchmarks.studies.statements.count import Count, usual
from benchmarks.studies.statements.traces import MARIADB_SETTINGS, POSTGRES_SETTINGS, TRACES

BATCHES = (1, 10, 50)
CALLS = (
    "enqueue",
    *(f"dequeue_fast({size})" for size in BATCHES),
    *(f"complete({size})" for size in BATCHES),
)
_BODY_BYTES = 200
_CLAIM = 0

_OpenLab = Callable[[str | None, Path], AbstractContextManager[Lab]]
_LABS: dict[str, _OpenLab] = {
    "postgres": lambda url, home: postgres.open_lab(
        url, home, postgres.SETTINGS | POSTGRES_SETTINGS
    ),
    "mariadb": lambda url, _: mysql.open_lab(url, mysql.SETTINGS | MARIADB_SETTINGS),
    "sqlserver": sqlserver.open_lab,
    "oracle": oracle.open_lab,
}


@dataclass(frozen=True, slots=True)
class CountPlan:
    """What is to be counted.

    url: of a server, None for a private one. home: that one's directory. root: the checkout.
    passes: how often each call is made. waiting: messages in the queue.
    """

    engine: str
    url: str | None
    home: Path
    root: Path
    command: str
    note: str
    passes: int
    waiting: int


def run_counts(plan: CountPlan) -> dict[str, Any]:
    """Make the calls on a server, and return the results as JSON data."""
    began = time.monotonic()
    form = rowq_form(plan.engine)
    with _LABS[plan.engine](plan.url, plan.home) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        lab.prepare(form)
        with lab.database(form) as url, TRACES[plan.engine](url) as trace:
            calls = _Calls(plan.engine, trace.session)
            calls.fill(plan.waiting)
            # Plans are made, and pages are read, before anything counts.
            for _ in range(plan.passes):
                calls.one_pass(lambda _, work: work())
            counts: dict[str, list[Count]] = defaultdict(list)
            for _ in range(plan.passes):
                calls.one_pass(lambda name, work: counts[name].append(trace.watch(work)))
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "source": "run",
        "engine": plan.engine,
        "calls": [{"call": name} | usual(counts[name]) for name in CALLS],
    }


class _Calls:
    """rowq's calls in one session, as a client makes them."""

    def __init__(self, engine: str, session: Session) -> None:
        self._sections = read_sections(rowq_file(engine))
        self._session = session
        self._bodies = Bodies(_BODY_BYTES)

    def fill(self, messages: int) -> None:
        """Make the queue with so many messages, as an administrator would leave it."""
        self._session.run(self._sections["create"])
        self._session.run(self._sections["fill"], messages=self._bodies.messages(messages))
        if "settle" in self._sections:
            self._session.run(self._sections["settle"])

    def one_pass(self, each: Any) -> None:
        """Make each call once; each: takes its name and a function that makes it."""
        for _ in range(sum(BATCHES)):
            self._session.run(self._sections["enqueue"], body=self._bodies())
        each("enqueue", lambda: self._run("enqueue", body=self._bodies()))
        for size in BATCHES:
            taken: list[Row] = []
            each(
                f"dequeue_fast({size})",
                lambda size=size, taken=taken: taken.extend(self._run("dequeue", batch=size)),
            )
            if len(taken) != size:
                raise RuntimeError(f"a dequeue of {size} returned {len(taken)} messages")
            claim = int(taken[0][_CLAIM] or 0)
            each(f"complete({size})", lambda claim=claim: self._run("complete", claim=claim))

    def _run(self, section: str, **values: Any) -> list[Row]:
        return self._session.run(self._sections[section], **values)
