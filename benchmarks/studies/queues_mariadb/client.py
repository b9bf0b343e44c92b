"""Clients of the systems on MariaDB, with minimal overhead."""

import json
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from benchmarks.engines.mysql.wire import BARE, Connection, WireError
from benchmarks.harness.host import Closing
from benchmarks.harness.load import body
from benchmarks.studies.queues.statements import LEASE_SECONDS

QUEUE = "bench"
_CHUNK = 10000

_Value = TypeVar("_Value")
_Answer = TypeVar("_Answer")
Rows = list[tuple[bytes | None, ...]]
_RETRIES = {1213, 1205, 1020}


class Client(Closing):
    """A session of one system, in autocommit.

    Statements that fail by a deadlock or lock timeout are counted and retried.
    """

    def __init__(self, url: str) -> None:
        self._session = Connection(url)
        self._deadlocks = 0
        self._taken: Rows = []

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    @property
    def server_cpu(self) -> float:
        """0: MariaDB does not count CPU time by session."""
        return 0.0

    @property
    def deadlocks(self) -> int:
        """The number of statements retried after a deadlock or lock timeout."""
        return self._deadlocks

    @abstractmethod
    def create(self) -> None:
        """Create the queue."""

    @abstractmethod
    def enqueue(self, body: bytes) -> None:
        """Add one message."""

    def enqueue_batch(self, count: int) -> None:
        """Add several messages in one call."""
        self._retry(self._add, count)

    def fill(self, count: int) -> None:
        """Add many messages, in chunks."""
        for first in range(0, count, _CHUNK):
            self.enqueue_batch(min(_CHUNK, count - first))

    def dequeue(self, batch: int) -> Rows:
        """Dequeue up to batch messages."""
        return self._retry(self._take, batch)

    def complete(self, taken: Rows) -> int:
        """Complete dequeued messages; return their number."""
        if taken:
            self._retry(self._finish, taken)
        return len(taken)

    def advance(self, batch: int) -> int:
        """Complete the messages of the last advance, and dequeue the next; return the completed."""
        count = self.complete(self._taken)
        self._taken = self.dequeue(batch)
        return count

    def advance_calls(self) -> int:
        """Return the number of calls of advance."""
        return 2

    @abstractmethod
    def waiting(self) -> int:
        """Return the number of messages that a dequeue could return."""

    def maintain(self) -> None:
        """Run the system's maintenance, if it has any."""

    def settle(self) -> None:
        """Update statistics after filling the queue, if the system needs it."""

    @abstractmethod
    def _add(self, count: int) -> None:
        """Add messages."""

    @abstractmethod
    def _take(self, batch: int) -> Rows:
        """Dequeue up to batch messages."""

    @abstractmethod
    def _finish(self, taken: Rows) -> None:
        """Complete dequeued messages."""

    def _run(self, statement: str) -> Rows:
        """Run a statement; return the rows of its first result."""
        return self._session.run(statement.encode())

    def _retry(self, act: Callable[[_Value], _Answer], value: _Value) -> _Answer:
        while True:
            try:
                return act(value)
            except WireError as error:
                if error.number not in _RETRIES:
                    raise
                self._deadlocks += 1
                self._run("rollback")


class Rowq(Client):
    """rowq's procedures."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._counts: dict[str, int] = {}

    def create(self) -> None:
        """Create the queue."""
        self._call("create_queue", f"'{QUEUE}'")

    def enqueue(self, body: bytes) -> None:
        """Add one message."""
        self._call("enqueue", f"'{QUEUE}'", f"'{body.decode()}'")

    def advance(self, batch: int) -> int:
        """Complete the messages of the last advance, and dequeue the next; return the completed."""
        taken = self._taken
        if not taken or self.advance_calls() == 2:
            return super().advance(batch)
        self._taken = self._retry(self._exchange, batch)
        return len(taken)

    def advance_calls(self) -> int:
        """Return 1, or 2 if an older commit lacks complete_and_dequeue."""
        return 1 if self._parameters("complete_and_dequeue") else 2

    def waiting(self) -> int:
        """Return the number of ready messages."""
        return int(_text(self._call("queue_stats", f"'{QUEUE}'", "100000000")[0][2]))

    def maintain(self) -> None:
        """Run maintain."""
        self._call("maintain")

    def _add(self, count: int) -> None:
        self._call("enqueue_batch", f"'{QUEUE}'", f"'{_json_batch(count)}'")

    def _take(self, batch: int) -> Rows:
        return self._call("dequeue_fast", f"'{QUEUE}'", f"{batch}", "'bench'", f"{LEASE_SECONDS}")

    def _exchange(self, batch: int) -> Rows:
        claim = _text(self._taken[0][0])
        more = ("null", "null", f"{batch}", "'bench'", f"{LEASE_SECONDS}")
        rows = self._call("complete_and_dequeue", f"'{QUEUE}'", claim, *more)
        if rows and rows[0][0] != b"leased":
            raise RuntimeError(f"claim {claim} is stale")
        # Without the outcome, as dequeue_fast returns them.
        return [row[1:] for row in rows]

    def _finish(self, taken: Rows) -> None:
        self._call("complete", f"'{QUEUE}'", _text(taken[0][0]))

    def _call(self, routine: str, *arguments: str) -> Rows:
        """Call a routine; its remaining arguments are null."""
        nulls = ["null"] * (self._parameters(routine) - len(arguments))
        return self._run(f"call rowq.{routine}({', '.join([*arguments, *nulls])})")

    def _parameters(self, routine: str) -> int:
        """Return the number of a routine's parameters, which older commits may lack."""
        if routine not in self._counts:
            rows = self._run(
                "select count(*) from information_schema.parameters"
                f" where specific_schema = 'rowq' and specific_name = '{routine}'"
            )
            self._counts[routine] = int(_text(rows[0][0]))
        return self._counts[routine]


class _OneTable(Client):
    """One table of jobs with a status and an owner."""

    def create(self) -> None:
        """Create the table."""
        self._run(
            f"create table {BARE}.job ("
            " job_id bigint unsigned not null auto_increment primary key,"
            " status enum('waiting', 'taken') not null default 'waiting',"
            " owner bigint unsigned not null default 0,"
            " taken_at datetime null,"
            " body longtext not null,"
            " key job_owner_ix (owner, status, taken_at)"
            ") engine = innodb default character set utf8mb4"
        )

    def enqueue(self, body: bytes) -> None:
        """Add one message."""
        self._run(f"insert into {BARE}.job (body) values ('{body.decode()}')")

    def waiting(self) -> int:
        """Return the number of jobs that are not taken."""
        return int(_text(self._run(f"select count(*) from {BARE}.job where owner = 0")[0][0]))

    def settle(self) -> None:
        """Update the optimizer's statistics."""
        self._run(f"analyze table {BARE}.job")

    def _add(self, count: int) -> None:
        self._run(f"insert into {BARE}.job (body) values {_values(count)}")

    def _finish(self, taken: Rows) -> None:
        self._run(f"delete from {BARE}.job where job_id in ({_ids(taken)})")


class SelectUpdate(_OneTable):
    """select ... for update, then update the selected rows, in one transaction."""

    lock = "for update"

    def _take(self, batch: int) -> Rows:
        self._run("begin")
        taken = self._run(
            f"select job_id, body from {BARE}.job"
            f" where owner = 0 and status = 'waiting' limit {batch} {self.lock}"
        )
        if taken:
            self._run(
                f"update {BARE}.job set status = 'taken', owner = connection_id(),"
                f" taken_at = utc_timestamp() where job_id in ({_ids(taken)})"
            )
        self._run("commit")
        return taken


class SkipLocked(SelectUpdate):
    """The same, but skip rows that another session has locked."""

    lock = "for update skip locked"


class UpdateLimit(_OneTable):
    """update ... limit with an owner column, then select its own rows."""

    def _take(self, batch: int) -> Rows:
        self._run(
            f"update {BARE}.job set status = 'taken', owner = connection_id(),"
            f" taken_at = utc_timestamp() where owner = 0 and status = 'waiting' limit {batch}"
        )
        if self._session.affected == 0:
            return []
        return self._run(
            f"select job_id, body from {BARE}.job"
            " where owner = connection_id() and status = 'taken'"
        )


def _ids(taken: Rows) -> str:
    return ", ".join(_text(row[0]) for row in taken)


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


@cache
def _json_batch(count: int) -> str:
    texts = json.dumps([{"body": body(number).decode()} for number in range(count)])
    return texts.replace("\\", "\\\\")


@cache
def _values(count: int) -> str:
    return ", ".join(f"('{body(number).decode()}')" for number in range(count))
