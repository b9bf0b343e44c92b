"""What SET STATISTICS IO says: a message for each statement, a sentence for each table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_TABLE = re.compile(
    r"Table '[^']*'\. Scan count \d+, logical reads (?P<reads>\d+),"
    r".*?lob logical reads (?P<lob_reads>\d+),"
)

START = "set language us_english; set statistics io on"
"""Lets a session tell its reads from now on, in the words that are read here."""


class Reads(NamedTuple):
    """Pages that statements have read, of what a plan keeps for itself too.

    lob_reads: those of bodies outside of their rows, which are not among the others.
    """

    reads: int = 0
    lob_reads: int = 0

    def plus(self, other: Reads) -> Reads:
        """Return the sum of both."""
        return Reads(self.reads + other.reads, self.lob_reads + other.lob_reads)


def parse(messages: Iterable[str]) -> Reads:
    """Return the reads of all tables that the messages speak of; others say nothing."""
    found = [one for message in messages for one in _TABLE.finditer(message)]
    return Reads(
        sum(int(one["reads"]) for one in found),
        sum(int(one["lob_reads"]) for one in found),
    )
