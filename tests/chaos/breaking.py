"""Stops every routine of the contract at one table, to be broken off there.

A table is held, so that each call stops when it comes to it, after whatever it did before. Then all
of them are broken off at once; broken_call.py judges what they leave.
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
    """A server, its database, and one picture of what each routine does when it is left alone."""

    def __init__(self, killable: KillableServer, url: str, room: Path) -> None:
        self.killable = killable
        self.url = url
        self.room = room
        self.routines = load_contract().of(killable.server.engine)
        self._after: dict[str, Picture] = {}

    def tables(self) -> list[str]:
        """Return the names of rowq's tables, as far as they are what files say they are."""
        files = sql_units(self.killable.server.engine, "tables")
        with closing(self.killable.server.connect(self.url)) as connection:
            there = dialect_of(connection).tables(connection)
        return sorted(there & {unit.stem for unit in files})

    def tables_of_messages(self) -> list[str]:
        """Return those which a call comes to after it has begun."""
        return [table for table in self.tables() if table not in {"meta", "queue"}]

    def readers_wait(self) -> bool:
        """Return whether a call that only reads stops at a table."""
        with closing(self.killable.server.connect(self.url)) as connection:
            return dialect_of(connection).readers_wait

    def readers(self) -> set[str]:
        """Return the routines that write nothing."""
        return {
            routine.name for routine in self.routines.values() if routine.group == "inspect"
        } | {"peek"}

    def prepare(self, names: Iterable[str], seeded_random: Random) -> list[BrokenCall]:
        """Return a call of each of these routines, some in a transaction of the caller's."""
        with closing(self.killable.server.connect(self.url)) as connection:
            return [
                self._broken_call(connection, self.routines[name], seeded_random) for name in names
            ]

    def _broken_call(
        self, connection: Connection, routine: Routine, seeded_random: Random
    ) -> BrokenCall:
        # The queues of all other routines keep the day that housekeeping may purge.
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
        """Hold a table, begin every call, and return the names of those that wait for it.

        The table is free again when the block ends, and the calls have come back.
        """
        callers = [broken.caller for broken in calls]
        for caller in callers:
            caller.connect()
            # Ask for the session's number now: some drivers cannot while a call is on its way.
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
        """Do as stopped_at with the calls in a process of their own, which is killed in the end."""
        path = self.room / "calls.json"
        path.write_text(program.as_text([broken.caller for broken in calls]))
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", program.__name__, self.url, str(path)]
        with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
            said, told = process.stdout, process.stdin
            assert said is not None
            assert told is not None
            assert said.readline() == "connected\n"
            ended: list[str] = []
            with ThreadPoolExecutor(1) as reader, self._held(table):
                told.write("go\n")
                told.flush()
                for broken in calls:
                    broken.began_at = broken.prepared.recorder.clock()
                reader.submit(lambda: ended.extend(iter(said.readline, "")))
                wait_until(
                    lambda: len(ended) + len(self.killable.server.waiting_sessions()) >= len(calls),
                    f"every call ends or waits for {table}",
                    SECONDS,
                )
                yield process
                process.kill()
        for place in map(int, ended):
            calls[place].caller.rows = []
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
            with suppress(dialect.database_error):  # A dead server has no lock to give back.
                dialect.unlock_table(holder)
            holder.close()

    def judge(self, calls: list[BrokenCall], where: str) -> None:
        """Let every call say what is wrong with what is left; nobody else may be connected."""
        wait_until(lambda: accepts(self.url), "the server is back", SECONDS)
        with closing(self.killable.server.connect(self.url)) as connection:
            wait_until(
                lambda: dialect_of(connection).other_sessions(connection) == 0,
                "nobody else is connected",
                SECONDS,
            )
            for broken in calls:
                faults = list(broken.faults(connection))
                name, error = broken.caller.routine.name, broken.caller.error
                assert not faults, f"{name}, {where}, {AGAIN}: {faults}; it said {error!r}"
