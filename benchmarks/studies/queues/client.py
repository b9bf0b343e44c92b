"""A client of one system: prepared statements, called through libpq with as little as possible.

psycopg's rows, types and pipelines would cost more than some of the statements that are measured;
its libpq calls cost microseconds.
"""

from typing import Any

from psycopg.pq.abc import PGresult

from benchmarks.engines.postgres.session import Libpq
from benchmarks.studies.queues.statements import Statements

_CALLS = ("create", "enqueue", "fill", "dequeue", "complete", "complete_many", "maintain")


class Client(Libpq):
    """A session with a system's statements prepared, each call its own transaction.

    url: of the database. statements: the system's. queue: the queue's name.
    durable: whether a commit waits for the disk.
    """

    def __init__(self, url: str, statements: Statements, queue: str, *, durable: bool) -> None:
        super().__init__(url)
        self.connection.execute(f"set synchronous_commit = {'on' if durable else 'off'}")
        self._statements = statements
        self._queue = queue.encode()
        for name in _CALLS:
            if (statement := getattr(statements, name)) is not None:
                self.prepare(name, statement)

    @property
    def deadlocks(self) -> int:
        """None: a deadlock is an error here, and ends the run."""
        return 0

    def create(self) -> None:
        """Create the queue."""
        self._run("create")

    def enqueue(self, body: bytes) -> None:
        """Add one message."""
        self._run("enqueue", body)

    def fill(self, count: int, *, delay: int = 0, chunk: int = 10000) -> None:
        """Add many messages, made by the server, in chunks; delay is in seconds."""
        for first in range(0, count, chunk):
            size = min(chunk, count - first)
            self._run("fill", b"%d" % first, b"%d" % size, b"%d" % delay)

    def dequeue(self, batch: int) -> PGresult:
        """Take up to batch messages: rows of id, body, claim."""
        return self._run("dequeue", b"%d" % batch)

    def complete(self, taken: PGresult) -> int:
        """Finish what dequeue returned; return how many messages those are."""
        count = taken.ntuples
        if count and self._statements.complete is not None:
            ids = [taken.get_value(row, 0) or b"" for row in range(count)]
            if self._statements.by_claim:
                self._run("complete", taken.get_value(0, 2) or b"")
            elif count == 1:
                self._run("complete", ids[0])
            else:
                self._run("complete_many", b"{" + b",".join(ids) + b"}")
        return count

    def maintain(self) -> None:
        """Do the system's housekeeping, if it has any."""
        if self._statements.maintain is not None:
            self._run("maintain")

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

    def _run(self, name: str, *parameters: bytes) -> PGresult:
        return self.call(name, [self._queue, *parameters])
