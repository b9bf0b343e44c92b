"""A client of one system: prepared statements, called through libpq with as little as possible.

psycopg's rows, types and pipelines would cost more than some of the statements that are measured;
its libpq calls cost microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from benchmarks.harness.closing import Closing
from benchmarks.harness.host import cpu_seconds
from benchmarks.studies.queues.statements import Statements

_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


class Client(Closing):
    """A session with a system's statements prepared, each call its own transaction.

    url: of the database. statements: the system's. queue: the queue's name.
    durable: whether a commit waits for the disk.
    """

    def __init__(self, url: str, statements: Statements, queue: str, *, durable: bool) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(f"set synchronous_commit = {'on' if durable else 'off'}")
        self._statements = statements
        self._queue = queue.encode()
        for name in ("create", "enqueue", "fill", "dequeue", "complete", "complete_many"):
            self._prepare(name, getattr(statements, name))
        self._prepare("maintain", statements.maintain)

    def close(self) -> None:
        """Close the session."""
        self.connection.close()

    @property
    def backend(self) -> int:
        """The server process's pid."""
        return self.connection.info.backend_pid

    @property
    def server_cpu(self) -> float:
        """Seconds of processor time of the server process."""
        return cpu_seconds(self.backend)

    @property
    def deadlocks(self) -> int:
        """None: a deadlock is an error here, and ends the run."""
        return 0

    @property
    def handled(self) -> Sequence[int]:
        """Nothing: no scenario of these clients asks for it."""
        return ()

    def create(self) -> None:
        """Create the queue."""
        self._run(b"create")

    def enqueue(self, body: bytes) -> None:
        """Add one message."""
        self._run(b"enqueue", body)

    def fill(self, count: int, *, delay: int = 0, chunk: int = 10000) -> None:
        """Add many messages, made by the server, in chunks; delay is in seconds."""
        for first in range(0, count, chunk):
            size = min(chunk, count - first)
            self._run(b"fill", b"%d" % first, b"%d" % size, b"%d" % delay)

    def dequeue(self, batch: int) -> PGresult:
        """Take up to batch messages: rows of id, body, claim."""
        return self._run(b"dequeue", b"%d" % batch)

    def complete(self, taken: PGresult) -> int:
        """Finish what dequeue returned; return how many messages those are."""
        count = taken.ntuples
        if count and self._statements.complete is not None:
            ids = [taken.get_value(row, 0) or b"" for row in range(count)]
            if self._statements.by_claim:
                self._run(b"complete", taken.get_value(0, 2) or b"")
            elif count == 1:
                self._run(b"complete", ids[0])
            else:
                self._run(b"complete_many", b"{" + b",".join(ids) + b"}")
        return count

    def maintain(self) -> None:
        """Do the system's housekeeping, if it has any."""
        if self._statements.maintain is not None:
            self._run(b"maintain")

    def buffers(self, batch: int) -> int:
        """Return how many buffers a dequeue touches, all statements in it included; undo it."""
        with self.connection.transaction(force_rollback=True):
            explain = "explain (analyze, buffers, timing off, format json) execute dequeue"
            row = self.connection.execute(
                f"{explain}('{self._queue.decode()}', {batch})"
            ).fetchone()
        assert row is not None
        plan: dict[str, Any] = row[0][0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    def _prepare(self, name: str, statement: str | None) -> None:
        if statement is not None:
            self._check(self.connection.pgconn.prepare(name.encode(), statement.encode()))

    def _run(self, name: bytes, *parameters: bytes) -> PGresult:
        values = [self._queue, *parameters]
        return self._check(self.connection.pgconn.exec_prepared(name, values))

    def _check(self, result: PGresult) -> PGresult:
        if result.status not in _GOOD:
            raise RuntimeError(result.error_message.decode(errors="replace"))
        return result
