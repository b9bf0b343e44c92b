"""Makes the calls of all forms by turns, and returns what each took as JSON data."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.postgres.lab import SETTINGS, open_lab
from benchmarks.engines.postgres.session import Libpq
from benchmarks.harness.bodies import body
from benchmarks.harness.host import running_seconds
from benchmarks.harness.runner import run_facts
from benchmarks.harness.scenarios import turned
from benchmarks.studies.floor.forms import BATCH, Form, bodies, forms

_WARM_UP = 3
# Only the session's own work is looked at: no waiting for the disk, and nobody cleans up meanwhile.
_SETTINGS = SETTINGS | {"synchronous_commit": "off", "autovacuum": "off"}


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """The settings of a run.

    rounds: how often the forms take turns. singles, batches: calls of a turn, of each kind.
    home: the private server's directory. root: the checkout. command, note: for the report.
    """

    rounds: int
    singles: int
    batches: int
    home: Path
    root: Path
    command: str
    note: str


def run_floor(plan: FloorPlan) -> dict[str, Any]:
    """Measure every form, and return the results as JSON data."""
    began = time.monotonic()
    with open_lab(None, plan.home, _SETTINGS) as lab, contextlib.ExitStack() as stack:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        sessions = []
        for form in forms():
            lab.prepare(form)
            url = stack.enter_context(lab.database(form))
            sessions.append(stack.enter_context(_Session(url, form)))
        rounds = [
            {"round": turn + 1, "form": session.form.name} | session.turn(plan)
            for turn in range(plan.rounds)
            for session in turned(sessions, turn)
        ]
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "settings": {"rounds": plan.rounds, "calls": plan.singles, "batches": plan.batches},
        "forms": [{"name": session.form.name, "title": session.form.title} for session in sessions],
        "rounds": rounds,
    }


class _Session(Libpq):
    """One session in a form's database, with the calls prepared."""

    def __init__(self, url: str, form: Form) -> None:
        super().__init__(url)
        self.form = form
        self._batch = form.pack(bodies())
        if form.create:
            self.connection.execute(form.create.encode())
        for kind, statement in form.calls.items():
            self.prepare(kind, statement)

    def turn(self, plan: FloorPlan) -> dict[str, float]:
        """Make the calls of a turn; return the µs of the server's processor a message, by kind."""
        self._singles(_WARM_UP)
        found = self._singles(plan.singles)
        self._batches(1)
        found["enqueue_batch"] = self._batches(plan.batches)
        # What is left over goes with its dead rows, so that every turn begins alike.
        for table in self.form.tables:
            if table != "rowq.floor":
                self.connection.execute(f"delete from {table}".encode())
            self.connection.execute(f"vacuum (truncate off) {table}".encode())
        return {kind: round(cost, 3) for kind, cost in found.items()}

    def _singles(self, calls: int) -> dict[str, float]:
        start = self._cpu()
        for number in range(calls):
            self.call("enqueue", [body(number)])
        put = self._cpu()
        taken = [self.call("dequeue", []).get_value(0, 0) for _ in range(calls)]
        took = self._cpu()
        for value in taken:
            assert value is not None
            self.call("complete", [value])
        spent = {"enqueue": put - start, "dequeue": took - put, "complete": self._cpu() - took}
        return {kind: cpu / calls for kind, cpu in spent.items()}

    def _batches(self, calls: int) -> float:
        start = self._cpu()
        for _ in range(calls):
            if self.call("enqueue_batch", [self._batch]).ntuples != BATCH:
                raise RuntimeError("a call did not put in its whole batch")
        return (self._cpu() - start) / calls / BATCH

    def _cpu(self) -> float:
        """Return the µs that the server process has had a processor."""
        return running_seconds(self.backend) * 1e6
