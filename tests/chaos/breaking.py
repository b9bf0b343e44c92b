"""Stop every routine at one locked table, to abort it there.

Each call stops when it reaches the locked table. Then all are aborted at once, and
broken_call.py judges the result.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random

from rowq.contract import Routine, load_contract
from tests.chaos import callers as program
from tests.chaos.broken_call import MAINTENANCE, BrokenCall
from tests.chaos.callers import Caller, accepts
from tests.chaos.killable import KillableServer
from tests.chaos.prepared import Picture, Prepared
from tests.dice import AGAIN
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import call
from tests.helpers.dialects import dialect_of
from tests.static.sources import sql_units

ROOT = Path(__file__).parents[2]
SECONDS = 60
_numbers = count()


class Stand:
    """A server, its database, and a picture of the full effect of each routine."""

    def __init__(self, killable: KillableServer, url: str, folder: Path) -> None:
        self.killable = killable
        self.url = url
        self.folder = folder
        self.routines = load_contract().of(killable.server.engine)
        self._after: dict[str, Picture] = {}

    def tables(self) -> list[str]:
        """Return the names of rowq's tables that exist."""
        files = sql_units(self.killable.server.engine, "tables")
        with closing(self.killable.server.connect(self.url)) as connection:
            there = dialect_of(connection).tables(connection)
        return sorted(there & {unit.stem for unit in files})

    def tables_of_messages(self) -> list[str]:
        """Return the tables that a call reaches after it has begun."""
        return [table for table in self.tables() if table not in {"meta", "queue"}]

    def readers_wait(self) -> bool:
        """Return whether a read-only call waits for a locked table."""
        with closing(self.killable.server.connect(self.url)) as connection:
            return dialect_of(connection).readers_wait

    def readers(self) -> set[str]:
        """Return the read-only routines."""
        return {
            routine.name for routine in self.routines.values() if routine.group == "inspect"
        } | {"peek"}

    def prepare(self, names: Iterable[str], seeded_random: Random) -> list[BrokenCall]:
        """Return a call of each of these routines, some in a caller's transaction."""
        with closing(self.killable.server.connect(self.url)) as connection:
            return [
                self._broken_call(connection, self.routines[name], seeded_random) for name in names
            ]

    def _broken_call(
        self, connection: Connection, routine: Routine, seeded_random: Random
    ) -> BrokenCall:
        # Other routines' queues keep the day that maintenance would purge.
        days = 1 if routine.group == MAINTENANCE else 30
        prepared = Prepared(connection, f"{routine.name} {next(_numbers)}", days)
        before = Picture.of(connection, prepared)
        if routine.name not in self._after:
            twin = Prepared(connection, f"{routine.name} {next(_numbers)}", days)
            call(connection, routine.name, **twin.arguments(routine))
            self._after[routine.name] = Picture.of(connection, twin)
        in_transaction = routine.kind != "procedure" and seeded_random.random() < 0.3
        caller = Caller(self.url, routine, prepared.arguments(routine), in_transaction)
        return BrokenCall(prepared, caller, before, self._after[routine.name])

    @contextmanager
    def stopped_at(self, table: str, calls: list[BrokenCall]) -> Iterator[set[str]]:
        """Lock a table, start every call, and yield the routines that wait for it.

        When the block ends, the table is unlocked and the calls have returned.
        """
        callers = [broken.caller for broken in calls]
        for caller in callers:
            caller.connect()
            # Read the session's id now: some drivers cannot during a call.
            caller.session = self.killable.server.session_id(caller.connection)
        with self._held(table):
            for broken in calls:
                broken.began_at = broken.prepared.recorder.clock()
                broken.caller.start()
            waiting: set[str] = set()

            def all_stop() -> bool:
                there = self.killable.server.waiting_sessions()
                left = [caller for caller in callers if not caller.has_ended]
                sessions = {caller.session: caller for caller in left}
                waiting.clear()
                waiting.update(
                    sessions[session].routine.name for session in there if session in sessions
                )
                return len(waiting) == len(left)

            wait_until(all_stop, f"every call ends or waits for {table}", SECONDS)
            yield waiting
        for caller in callers:
            caller.wait()
            caller.close()

    @contextmanager
    def in_a_program(self, table: str, calls: list[BrokenCall]) -> Iterator[subprocess.Popen[str]]:
        """Do the same as stopped_at in a separate process, which is killed at the end."""
        path = self.folder / "calls.json"
        path.write_text(program.as_text([broken.caller for broken in calls]))
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", program.__name__, self.url, str(path)]
        with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
            stdout, stdin = process.stdout, process.stdin
            assert stdout is not None
            assert stdin is not None
            assert stdout.readline() == "connected\n"
            ended: list[str] = []
            with ThreadPoolExecutor(1) as reader, self._held(table):
                stdin.write("go\n")
                stdin.flush()
                for broken in calls:
                    broken.began_at = broken.prepared.recorder.clock()
                reader.submit(lambda: ended.extend(iter(stdout.readline, "")))
                wait_until(
                    lambda: len(ended) + len(self.killable.server.waiting_sessions()) >= len(calls),
                    f"every call ends or waits for {table}",
                    SECONDS,
                )
                yield process
                process.kill()
        for position in map(int, ended):
            calls[position].caller.rows = []
        for broken in calls:
            broken.caller.error = ConnectionAbortedError()

    @contextmanager
    def _held(self, table: str) -> Iterator[None]:
        holder = self.killable.server.connect(self.url)
        dialect = dialect_of(holder)
        dialect.lock_table(holder, table)
        try:
            yield
        finally:
            with suppress(dialect.database_error):  # A dead server has no locks.
                dialect.unlock_table(holder)
            holder.close()

    def judge(self, calls: list[BrokenCall], where: str) -> None:
        """Judge every call; no other session may be connected."""
        wait_until(lambda: accepts(self.url), "the server is back", SECONDS)
        with closing(self.killable.server.connect(self.url)) as connection:
            wait_until(
                lambda: dialect_of(connection).other_sessions(connection) == 0,
                "no other session is connected",
                SECONDS,
            )
            for broken in calls:
                faults = list(broken.faults(connection))
                name, error = broken.caller.routine.name, broken.caller.error
                assert not faults, f"{name}, {where}, {AGAIN}: {faults}; it raised {error!r}"
