"""The demo's orders, the table in which workers book them, and the killer of a worker.

data/README.md names the source of the orders. To kill a worker while it holds a claim, the killer
inserts the row of a future order in an open transaction. The worker that books this order waits for
that row in the middle of its claim until it is killed. Then the killer rolls back.
"""

import csv
import json
import lzma
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowq.messages import Message, MessageDetails
from rowq.queue import Queue

DATA = Path(__file__).parent / "data" / "cdnow_orders.csv.xz"

_STEP = 1000


@dataclass(frozen=True, slots=True)
class Order:
    """One order, with a month such as 1997-01."""

    number: int
    month: str
    cents: int

    @classmethod
    def from_row(cls, row: dict[str, str]) -> "Order":
        """Read a row of the file or the body of a message: they have the same keys."""
        return cls(int(row["order"]), row["date"][:7], cents(row["dollars"]))


def cents(dollars: str) -> int:
    """Convert an amount such as 11.77 to cents; raise ValueError if it has another form."""
    whole, point, fraction = dollars.partition(".")
    if not point or len(fraction) != 2:
        raise ValueError(f"an amount must have two decimals, got {dollars!r}")
    return int(whole + fraction)


def rows(path: Path = DATA) -> Iterator[dict[str, str]]:
    """Yield the rows of the file."""
    with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def bodies(path: Path = DATA) -> Iterator[str]:
    """Yield the rows as JSON."""
    return (json.dumps(row) for row in rows(path))


def cents_per_month(path: Path = DATA) -> dict[str, int]:
    """Return the totals of the file, to check the demo's result against."""
    totals: Counter[str] = Counter()
    for row in rows(path):
        totals[row["date"][:7]] += cents(row["dollars"])
    return dict(sorted(totals.items()))


@dataclass(frozen=True, slots=True)
class Booked:
    """Totals of the ledger; `redelivered` counts orders with more than one attempt."""

    orders: int
    redelivered: int
    cents_per_month: dict[str, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table with one row per booked order; its primary key prevents booking twice.

    It is also the workers' transactional handler: booking and completion are one transaction.
    """

    table: str

    def __call__(self, messages: Sequence[Message], connection: Any) -> None:
        """Book the orders of a claim."""
        entries = [(Order.from_row(message.data), message.attempt) for message in messages]
        with connection.cursor() as cursor:
            cursor.executemany(
                f"insert into {self.table} (order_number, month, cents, attempt)"  # noqa: S608
                " values (%s, %s, %s, %s)",
                [(order.number, order.month, order.cents, attempt) for order, attempt in entries],
            )

    def create(self, connection: Any) -> None:
        """Create the table."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"create table {self.table} (order_number integer not null primary key,"
                " month varchar(7) not null, cents integer not null, attempt integer not null)"
            )

    def drop(self, connection: Any) -> None:
        """Drop the table if it exists."""
        with connection.cursor() as cursor:
            cursor.execute(f"drop table if exists {self.table}")

    def reserve(self, connection: Any, order_number: int) -> bool:
        """Begin a transaction that blocks the booking of an order; False if already booked."""
        with connection.cursor() as cursor:
            cursor.execute("begin")
            cursor.execute(
                f"select count(*) from {self.table} where order_number = %s",  # noqa: S608
                (order_number,),
            )
            if cursor.fetchone()[0]:
                cursor.execute("rollback")
                return False
            cursor.execute(
                f"insert into {self.table} (order_number, month, cents, attempt)"  # noqa: S608
                " values (%s, '', 0, 0)",
                (order_number,),
            )
        return True

    def unreserve(self, connection: Any) -> None:
        """Undo reserve."""
        with connection.cursor() as cursor:
            cursor.execute("rollback")

    def read(self, connection: Any) -> Booked:
        """Return the totals of the booked orders."""
        with connection.cursor() as cursor:
            again = "sum(case when attempt > 1 then 1 else 0 end)"
            cursor.execute(
                f"select month, count(*), sum(cents), {again} from {self.table}"  # noqa: S608
                " group by month order by month"
            )
            months = cursor.fetchall()
        return Booked(
            orders=sum(int(count) for _, count, _, _ in months),
            redelivered=sum(int(again) for _, _, _, again in months),
            cents_per_month={month: int(cents) for month, _, cents, _ in months},
        )


@dataclass(frozen=True, slots=True)
class Killed:
    """The killed worker, and its claim."""

    pid: int
    claim_id: int
    order_number: int


class Killer:
    """Kills one worker in the middle of the drain, during which `tick` is called repeatedly."""

    def __init__(
        self, queue: Queue, queue_name: str, ledger: Ledger, connection: Any, message_ids: list[int]
    ) -> None:
        """Watch `queue_name`; `message_ids[n - 1]` is the message of order n."""
        self._queue = queue
        self._queue_name = queue_name
        self._ledger = ledger
        self._connection = connection
        self._message_ids = message_ids
        self._reserved: int | None = None
        self.killed: Killed | None = None

    def tick(self, done: int) -> Killed | None:
        """Do the next step after `done` orders; return the killed worker once."""
        if self.killed is not None:
            return None
        if self._reserved is None:
            if done >= len(self._message_ids) // 4:
                self._reserve(len(self._message_ids) // 2)
            return None
        found = self._queue.get_message(self._queue_name, self._message_ids[self._reserved - 1])
        if found is None or found.state != "leased":
            return None
        self.killed = self._kill(found)
        self.stop()
        return self.killed

    def stop(self) -> None:
        """Roll back the transaction, so that no worker waits for it."""
        if self._reserved is not None:
            self._ledger.unreserve(self._connection)
            self._reserved = None

    def _reserve(self, first: int) -> None:
        for number in range(first, len(self._message_ids), _STEP):
            if self._ledger.reserve(self._connection, number):
                self._reserved = number
                return

    def _kill(self, found: MessageDetails) -> Killed:
        """Kill the process of the worker that holds the message."""
        assert self._reserved is not None
        assert found.claim_id is not None
        assert found.worker_name is not None
        pid = int(found.worker_name.rpartition(":")[2])
        if pid not in {child.pid for child in multiprocessing.active_children()}:
            raise RuntimeError(f"{found.worker_name} is not one of the demo's workers")
        os.kill(pid, signal.SIGKILL)
        return Killed(pid, found.claim_id, self._reserved)
