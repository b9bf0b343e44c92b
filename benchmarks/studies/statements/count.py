"""What is counted of one call."""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from statistics import median_low

_DATA = ("select", "with", "insert", "update", "delete", "merge")
_TRANSACTION = ("start transaction", "set transaction", "begin transaction", "commit", "savepoint")
_BEFORE = re.compile(r"\A(?:[\s(]|--[^\n]*\n)+")
# An assignment or a condition with one of these asks the database, too.
_INSIDE = re.compile(r"\(select\b|\bnext value for\b|\.nextval\b")


@dataclass(frozen=True, slots=True)
class Count:
    """What one call ran in the server, itself not counted; None: not measured.

    statements: on rows, each time that one runs. kinds: different ones among these, which a cold
    call pays for. calls: of rowq's own routines. transaction: statements that begin, set, mark or
    commit a transaction. reads: pages.
    """

    statements: int
    kinds: int
    calls: int | None
    transaction: int | None
    reads: int | None


FIGURES = ("statements", "kinds", "calls", "transaction", "reads")


def counted(
    ran: Iterable[tuple[Hashable, str]], calls: int | None, reads: int | None = None
) -> Count:
    """Count statements: each is what makes it another kind than others, and its text."""
    data, others = [], 0
    for kind, text in ran:
        word = _BEFORE.sub("", text.lower())
        if word.startswith(_DATA) or _INSIDE.search(word):
            data.append(kind)
        others += word.startswith(_TRANSACTION)
    return Count(len(data), len(set(data)), calls, others, reads)


def usual(counts: list[Count]) -> dict[str, int | None]:
    """Return the median of each figure over several calls."""
    figures: dict[str, int | None] = {}
    for name in FIGURES:
        values = [value for count in counts if (value := getattr(count, name)) is not None]
        figures[name] = median_low(values) if values else None
    return figures
