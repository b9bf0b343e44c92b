"""The demo's orders, and the table where its workers book them.

data/README.md names the source of the 69,659 orders. The table stands beside rowq's, and is gone
after the demo.
"""

import csv
import json
import lzma
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowq.messages import Message

DATA = Path(__file__).parent / "data" / "cdnow_orders.csv.xz"


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
