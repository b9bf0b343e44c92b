"""The demo's input: 69,659 real orders; data/README.md names their source."""

import csv
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
