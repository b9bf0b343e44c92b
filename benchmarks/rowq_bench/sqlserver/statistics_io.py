"""What SET STATISTICS IO says: a message for each statement, a sentence for each table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

_TABLE = re.compile(
    r"Table '(?P<table>[^']*)'\. Scan count \d+, logical reads (?P<reads>\d+),"
    r".*?lob logical reads (?P<lob_reads>\d+),"
)
# Names of table variables and worktables say nothing, and differ from run to run.
_NAMELESS = re.compile(r"^(#|Worktable$|Workfile$)")


@dataclass(frozen=True, slots=True)
class Reads:
    """Pages that statements have read from one table; lob_reads: of bodies outside of the rows.

    table: its name, "(temporary)" for a table variable and for what a plan keeps for itself.
    """

    table: str
    reads: int
    lob_reads: int


def parse(messages: Iterable[str]) -> list[Reads]:
    """Return the reads of each table that the messages speak of, in their order."""
    found: dict[str, list[int]] = {}
    for message in messages:
        for one in _TABLE.finditer(message):
            name = "(temporary)" if _NAMELESS.match(one["table"]) else one["table"]
            sums = found.setdefault(name, [0, 0])
            sums[0] += int(one["reads"])
            sums[1] += int(one["lob_reads"])
    return [Reads(name, *sums) for name, sums in found.items()]


def begin(connection: Any) -> None:
    """Let a session of pyodbc's tell its reads from now on, in the words that are read here."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("set language us_english")
        cursor.execute("set statistics io on")


def run(connection: Any, statement: str, *values: Any) -> tuple[list[tuple[Any, ...]], list[Reads]]:
    """Run a statement of any number of results; return all rows, and the reads."""
    rows: list[tuple[Any, ...]] = []
    messages: list[str] = []
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, *values)
        while True:
            if cursor.description:
                rows.extend(map(tuple, cursor.fetchall()))
            # The driver makes a new list for each result; what was read comes after its rows.
            told = cursor.messages
            messages.extend(text for _, text in told or ())
            if not cursor.nextset():
                break
        if cursor.messages is not told:
            messages.extend(text for _, text in cursor.messages or ())
    return rows, parse(messages)
