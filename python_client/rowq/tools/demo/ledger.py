"""The demo's orders, the table where its workers book them, and what kills one of these.

data/README.md names the source of the 69,659 orders. The table stands beside rowq's, and is gone
after the demo. A worker is killed while it holds a claim, not a moment before or after: the killer
reserves the place of an order that is still to come, in a transaction that stays open. The worker
that takes this order has to wait in the middle of booking its claim, and can neither finish it nor
lose it, until it is killed. Then the reservation is given up.
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
    """One order; `month` is such as 1997-01, money is in cents."""

    number: int
    month: str
    cents: int

    @classmethod
    def from_row(cls, row: dict[str, str]) -> "Order":
        """Read a row of the file, or the body of a message, which is the same as JSON."""
        return cls(int(row["order"]), row["date"][:7], cents(row["dollars"]))


def cents(dollars: str) -> int:
    """Return an amount such as 11.77 in cents, exactly; raises ValueError for another form."""
    whole, point, fraction = dollars.partition(".")
    if not point or len(fraction) != 2:
        raise ValueError(f"an amount has two decimals, got {dollars!r}")
    return int(whole + fraction)


def rows(path: Path = DATA) -> Iterator[dict[str, str]]:
    """Yield the rows of the file as the demo sends them."""
    with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def bodies(path: Path = DATA) -> Iterator[str]:
    """Yield the rows as JSON."""
    return (json.dumps(row) for row in rows(path))


def cents_per_month(path: Path = DATA) -> dict[str, int]:
    """Add the file up, without any queue: what the demo's result is held against."""
    totals: Counter[str] = Counter()
    for row in rows(path):
        totals[row["date"][:7]] += cents(row["dollars"])
    return dict(sorted(totals.items()))


@dataclass(frozen=True, slots=True)
class Booked:
    """What the ledger holds: orders, those among them that came more than once, and sums."""

    orders: int
    redelivered: int
    cents_per_month: dict[str, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table with one row per booked order. Its primary key refuses to book an order twice.

    It is also the workers' handler: called with a claim's messages and the connection on which rowq
    completes them, so that booking and completion are one transaction.
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
        """Make the table."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"create table {self.table} (order_number integer not null primary key,"
                " month varchar(7) not null, cents integer not null, attempt integer not null)"
            )

    def drop(self, connection: Any) -> None:
        """Remove the table if it is there."""
        with connection.cursor() as cursor:
            cursor.execute(f"drop table if exists {self.table}")

    def reserve(self, connection: Any, order_number: int) -> bool:
        """Begin a transaction that holds the place of an order; False when it is booked already.

        Whoever books this order waits until the transaction ends.
        """
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

    def let_go(self, connection: Any) -> None:
        """Undo reserve."""
        with connection.cursor() as cursor:
            cursor.execute("rollback")

    def read(self, connection: Any) -> Booked:
        """Add up what is booked."""
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
    """The worker that was killed, and the claim that it held."""

    pid: int
    claim_id: int
    order_number: int


class Killer:
    """Strikes once, in the middle of the drain; `tick` is called again and again meanwhile."""

    def __init__(
        self, queue: Queue, queue_name: str, ledger: Ledger, connection: Any, message_ids: list[int]
    ) -> None:
        """Watch `queue_name`; `message_ids[n - 1]` is the message of order n."""
        self._queue = queue
        self._queue_name = queue_name
        self._ledger = ledger
        self._connection = connection
        self._message_ids = message_ids
        self._bait: int | None = None
        self.killed: Killed | None = None

    def tick(self, done: int) -> Killed | None:
        """Do the next step after `done` orders; return the killed worker once, when it is done."""
        if self.killed is not None:
            return None
        if self._bait is None:
            if done >= len(self._message_ids) // 4:
                self._lay_bait(len(self._message_ids) // 2)
            return None
        found = self._queue.get_message(self._queue_name, self._message_ids[self._bait - 1])
        if found is None or found.state != "leased":
            return None
        self.killed = self._kill(found)
        self.give_up()
        return self.killed

    def give_up(self) -> None:
        """End the transaction, so that nobody waits for it."""
        if self._bait is not None:
            self._ledger.let_go(self._connection)
            self._bait = None

    def _lay_bait(self, first: int) -> None:
        for number in range(first, len(self._message_ids), _STEP):
            if self._ledger.reserve(self._connection, number):
                self._bait = number
                return

    def _kill(self, found: MessageDetails) -> Killed:
        """Kill the process of the worker that holds the message."""
        assert self._bait is not None
        assert found.claim_id is not None
        assert found.worker_name is not None
        pid = int(found.worker_name.rpartition(":")[2])
        if pid not in {child.pid for child in multiprocessing.active_children()}:
            raise RuntimeError(f"{found.worker_name} is not one of the demo's workers")
        os.kill(pid, signal.SIGKILL)
        return Killed(pid, found.claim_id, self._bait)
