"""The client of a form: it runs the sections of its SQL file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.harness.closing import Closing
from benchmarks.harness.session import RetryError, Row
from benchmarks.studies.seeds.bodies import Bodies
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.sections import read_sections

_CHUNK_BYTES = 2 << 20
_MOST = 1000

_Answer = TypeVar("_Answer")
Rows = list[Row]


class SqlClient(Closing):
    """A session of one form.

    path: its SQL file. url: of its database. body_bytes: greatest length of the bodies of `fill`.
    What ends in a deadlock or a lock timeout is counted, rolled back and tried again.
    """

    def __init__(self, dialect: Dialect, path: Path, url: str, body_bytes: int) -> None:
        self.sections = read_sections(path)
        self.session = dialect.open(url)
        self.handled: list[int] = []
        self._deadlocks = 0
        self._bodies = Bodies(body_bytes)
        self.optional("session")
        self._chunk = min(_MOST, max(1, 2 * _CHUNK_BYTES // body_bytes))

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    @property
    def server_cpu(self) -> float:
        """Seconds that the server spent for this session alone; 0 where nobody can tell."""
        return self.session.server_cpu

    @property
    def deadlocks(self) -> int:
        """The number of statements tried again after a deadlock or a lock timeout."""
        return self._deadlocks

    def create(self) -> None:
        """Create the queue, where that is more than its tables."""
        self.optional("create")

    def enqueue(self, body: bytes) -> None:
        """Add one message."""
        self.patiently(lambda: self.session.run(self.sections["enqueue"], body=body))

    def fill(self, count: int) -> None:
        """Add many messages, a few megabytes a statement."""
        for first in range(0, count, self._chunk):
            self.patiently(partial(self._add, min(self._chunk, count - first)))

    def _add(self, count: int) -> None:
        self.session.run(self.sections["fill"], messages=self._bodies.messages(count))

    def settle(self) -> None:
        """Do what an administrator would do after filling the queue."""
        self.optional("settle")

    def dequeue(self, batch: int) -> Rows:
        """Take up to batch messages."""
        return self.patiently(lambda: self.session.run(self.sections["dequeue"], batch=batch))

    def dequeue_held(self, batch: int) -> Rows:
        """Take up to batch messages in a transaction that is open."""
        text = self.sections.get("dequeue_held", self.sections["dequeue"])
        return self.session.run(text, batch=batch)

    def complete(self, taken: Rows) -> int:
        """Finish what dequeue returned, and keep the ids; return how many messages those are."""
        if taken:
            self.patiently(lambda: self.finish(taken))
            self.handled.extend(ids_of(taken))
        return len(taken)

    def finish(self, taken: Rows) -> None:
        """Run the statement that finishes these messages."""
        self.session.run(self.sections["complete"], ids=ids_of(taken))

    def maintain(self) -> None:
        """Do the form's housekeeping, if it has any."""
        self.optional("maintain")

    def optional(self, section: str) -> None:
        """Run a section if there is one."""
        if section in self.sections:
            self.session.run(self.sections[section])

    def patiently(self, act: Callable[[], _Answer]) -> _Answer:
        """Do something, again and again as long as it ends in a deadlock or a lock timeout."""
        while True:
            try:
                return act()
            except RetryError:
                self._deadlocks += 1
                self.session.run("rollback")


def rowq_file(engine: str) -> Path:
    """Return the SQL file with rowq's routines as a client calls them."""
    return Path(__file__).parent / "rowq" / f"{engine}.sql"


class RowqClient(SqlClient):
    """A session of rowq: dequeue returns the contract's ten columns, a whole claim is completed."""

    def dequeue(self, batch: int) -> Rows:
        """Take up to batch messages."""
        return _in_order(super().dequeue(batch))

    def dequeue_held(self, batch: int) -> Rows:
        """Take up to batch messages in a transaction that is open."""
        return _in_order(super().dequeue_held(batch))

    def finish(self, taken: Rows) -> None:
        """Complete the claim."""
        self.session.run(self.sections["complete"], claim=int(taken[0][2] or 0))


def _in_order(rows: Rows) -> Rows:
    """Return id, body and claim of each message."""
    return [(row[1], row[5], row[0]) for row in rows]


def ids_of(taken: Rows) -> list[int]:
    """Return the ids of messages that dequeue returned."""
    return [int(row[0] or 0) for row in taken]
