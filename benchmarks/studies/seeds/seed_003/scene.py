"""Plays a scene: four workers that hold messages, what happens to them, and one that takes over."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.engines.oracle.observe import DISCONNECT
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.client import SqlClient
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.seed_003.diary import read_diaries
from benchmarks.studies.seeds.seed_003.workers import (
    BATCH,
    HAPPENED,
    KEEP_HOUSE_SECONDS,
    Part,
    run_owner,
    run_rowq,
)

RESCUER = "rescuer"
# Each worker is at its first message for so many lease limits from the moment when things happen.
# The one that is killed gets its messages last, so that its claim is young then.
CASES = {"slow": 2.5, "cut_off": 2.5, "suspended": 0.0, "killed": 1.0}
_SUSPENDED_LIMITS = 2.5
_LAST_LIMITS = 3.5
_PATIENCE = 60.0
_TICK = 0.02
_SESSIONS = {
    "postgres": "select pid from pg_stat_activity where backend_type = 'client backend'",
    "mariadb": "select id from information_schema.processlist",
    "sqlserver": "select session_id from sys.dm_exec_sessions where database_id = db_id()"
    " and is_user_process = 1",
    "oracle": "select s.sid from v$session s where s.username = user",
}
_CUT = {
    "postgres": "select pg_terminate_backend(:session)",
    "mariadb": "kill :session",
    "sqlserver": "declare @kill nvarchar(40) = concat(N'kill ', :session); exec (@kill)",
    "oracle": DISCONNECT,
}


class Scene:
    """One form's play.

    control: a client of the form, for the messages and for the reset of old claims.
    folder: of the diaries. limit: seconds after which a claim is old, or of a lease.
    """

    def __init__(
        self,
        dialect: Dialect,
        url: str,
        form: Form,
        control: SqlClient,
        folder: Path,
        limit: int,
    ) -> None:
        self._dialect = dialect
        self._form = form
        self._control = control
        self._folder = folder
        self._limit = limit
        context = multiprocessing.get_context("spawn")
        work = run_rowq if form.name == "rowq" else partial(run_owner, form.open_client)
        firsts: dict[str, float | None] = {RESCUER: None}
        firsts |= {name: limits * limit for name, limits in CASES.items()}
        self._gates = {name: context.Event() for name in firsts}
        self._processes = {
            name: context.Process(
                target=_enter,
                args=(work, Part(name, url, folder, first, limit), self._gates[name]),
                daemon=True,
            )
            for name, first in firsts.items()
        }

    def play(self) -> tuple[float, float]:
        """Play it; return when things happened and when the suspended resumed, monotonic."""
        try:
            for process in self._processes.values():
                process.start()
            sessions = {name: self._hand_messages_to(name) for name in CASES}
            self._gates[RESCUER].set()
            self._signal("killed", signal.SIGKILL)
            self._signal("suspended", signal.SIGSTOP)
            self._cut(sessions["cut_off"])
            happened = time.monotonic()
            (self._folder / HAPPENED).touch()
            self._keep_house_until(happened + _SUSPENDED_LIMITS * self._limit)
            resumed = time.monotonic()
            self._signal("suspended", signal.SIGCONT)
            self._keep_house_until(happened + _LAST_LIMITS * self._limit)
        finally:
            for name, process in self._processes.items():
                if process.is_alive():
                    self._signal(name, signal.SIGKILL)
                    process.join()
        return happened, resumed

    def _hand_messages_to(self, name: str) -> set[int]:
        """Let a worker begin with messages of its own; return the sessions that it opened."""
        before = self._sessions()
        for _ in range(BATCH):
            self._control.enqueue(name.encode())
        self._gates[name].set()
        until = time.monotonic() + _PATIENCE
        while not any(entry.who == name for entry in read_diaries(self._folder)):
            if time.monotonic() > until:
                raise RuntimeError(f"the worker {name} does not begin")
            time.sleep(_TICK)
        return self._sessions() - before

    def _sessions(self) -> set[int]:
        rows = self._control.session.run(_SESSIONS[self._dialect.name])
        return {int(row[0] or 0) for row in rows}

    def _cut(self, sessions: set[int]) -> None:
        """End sessions, as a proxy, a failover or an idle timeout would."""
        for session in sessions & self._sessions():
            self._control.session.run(_CUT[self._dialect.name], session=session)

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._processes[name].pid
        if pid is not None:
            os.kill(pid, number)

    def _keep_house_until(self, until: float) -> None:
        """Reset old claims every quarter of a second; rowq's workers do their own housekeeping."""
        while time.monotonic() < until:
            self._reset()
            time.sleep(KEEP_HOUSE_SECONDS)

    def _reset(self) -> None:
        control = self._control
        text = control.sections.get(self._form.name)
        if text is None:
            return
        rows = control.session.run(control.sections["sessions"])
        ids = [int(row[0] or 0) for row in rows]
        control.patiently(lambda: control.session.run(text, seconds=self._limit, sessions=ids))


def _enter(work: Callable[[Part], None], part: Part, gate: Event) -> None:
    gate.wait()
    work(part)
