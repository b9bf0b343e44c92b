"""Seed 000 on SQL Server: logical and LOB reads of a dequeue, by SET STATISTICS IO.

The document fills its tables with 40,000 rows of 500 MB and counts the reads of one dequeue: 1,695
and 675 of LOBs for the wide table, 1,546 and 380 for the split ones (10 rows each), 553 and 56 for
the one statement (100 rows). Here every form is counted with both sizes, when the queue is full and
when half of it is processed.
"""

from __future__ import annotations

import base64
import json
import random
import re
import statistics
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rowq_bench.sqlserver.statistics_io import Reads, begin, run
from rowq.engines.sqlserver import ENGINE
from rowq.migrate import migrate
from rowq.migrate.sqlserver.sql import batches

FORMS = ("queue_slow", "split_tables", "one_statement", "rowq")
"""Names of the files in forms/; the last one is what `rowq migrate` installs."""

BATCHES = (10, 100)
_FOLDER = Path(__file__).with_name("forms")
_SECTION = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)
_CHUNK = 200
_SESSION = "select s.logical_reads from sys.dm_exec_sessions s where s.session_id = @@spid"

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Size:
    """messages: how many there are. characters: greatest length of a body. samples: dequeues."""

    messages: int = 40_000
    characters: int = 12_500
    samples: int = 9


@dataclass(frozen=True, slots=True)
class Count:
    """Median reads of one call.

    when: "full" or "half". act: "dequeue" or "complete". tables: reads of each table, the median of
    each for itself. session: pages that the session says it has read, LOBs among them; it should be
    the sum of reads and lob_reads, and shows a message that a driver has lost.
    """

    form: str
    when: str
    batch: int
    act: str
    reads: float
    lob_reads: float
    tables: dict[str, float]
    session: float


def read_form(form: str) -> dict[str, str]:
    """Return the sections of a form's file by their names."""
    _, *parts = _SECTION.split((_FOLDER / f"{form}.sql").read_text("utf-8"))
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


class Client:
    """A session of one form, in a database that has nothing but it."""

    def __init__(self, form: str, connection: Any) -> None:
        self._form = form
        self._connection = connection
        self._sections = read_form(form)

    def install(self, url: str) -> None:
        """Make the form's tables and procedures."""
        if self._form == "rowq":
            migrate(url)
        for batch in batches(self._sections.get("install", "")):
            self._connection.execute(batch)
        self.optional("create")

    def fill(self, size: Size) -> None:
        """Add messages whose bodies are random, the same ones for every form."""
        source = random.Random(size.characters)
        pool = base64.b64encode(source.randbytes(2 * size.characters)).decode("ascii")
        for first in range(0, size.messages, _CHUNK):
            bodies = []
            for _ in range(min(_CHUNK, size.messages - first)):
                start = source.randrange(size.characters)
                bodies.append({"body": pool[start : start + source.randint(1, size.characters)]})
            self._run("fill", json.dumps(bodies))

    def optional(self, section: str) -> None:
        """Run a section if there is one."""
        if section in self._sections:
            run(self._connection, self._sections[section])

    def dequeue(self, batch: int) -> tuple[Rows, list[Reads]]:
        """Take messages: their rows, and what was read."""
        return self._run("dequeue", batch)

    def complete(self, taken: Rows) -> list[Reads]:
        """Finish what dequeue returned; rowq's second column is the message, the others' first."""
        place = 1 if self._form == "rowq" else 0
        ids = json.dumps([row[place] for row in taken])
        if self._form != "rowq":
            return self._run("complete", ids)[1]
        text = self._sections["complete"]
        return run(self._connection, f"{text}, @message_ids = ?", taken[0][0], ids)[1]

    def session_reads(self) -> int:
        """Return the pages that the session has read since it began."""
        ((reads,),), _ = run(self._connection, _SESSION)
        return int(reads)

    def _run(self, section: str, value: object) -> tuple[Rows, list[Reads]]:
        """Run a section with its one value."""
        text = self._sections[section]
        if text.startswith("exec "):
            return run(self._connection, text.replace("@value", "?"), value)
        return run(self._connection, f"declare @value nvarchar(max) = ?;\n{text}", value)


def measure(form: str, url: str, size: Size) -> Iterator[Count]:
    """Yield the counts of a form; url: of an empty database."""
    with closing(ENGINE.connect(url)) as connection:
        client = Client(form, connection)
        client.install(url)
        client.fill(size)
        client.optional("settle")
        begin(connection)
        yield from _counts(client, form, "full", size.samples)
        left = size.messages // 2 - (size.samples + 1) * sum(BATCHES)
        while left > 0:
            taken, _ = client.dequeue(BATCHES[-1])
            client.complete(taken)
            left -= len(taken)
        yield from _counts(client, form, "half", size.samples)


def _counts(client: Client, form: str, when: str, samples: int) -> Iterator[Count]:
    for batch in BATCHES:
        client.complete(client.dequeue(batch)[0])
        found: dict[str, list[tuple[list[Reads], int]]] = {"dequeue": [], "complete": []}
        for _ in range(samples):
            taken, reads, pages = _watched(client, lambda: client.dequeue(batch))  # noqa: B023
            if len(taken) != batch:
                raise RuntimeError(f"{form}: {len(taken)} messages instead of {batch}")
            found["dequeue"].append((reads, pages))
            _, reads, pages = _watched(client, lambda: ([], client.complete(taken)))  # noqa: B023
            found["complete"].append((reads, pages))
        for act, seen in found.items():
            yield _median(form, when, batch, act, seen)


def _watched(
    client: Client, act: Callable[[], tuple[Rows, list[Reads]]]
) -> tuple[Rows, list[Reads], int]:
    """Return what an act returns, and the pages that its session says it has read meanwhile."""
    before = client.session_reads()
    asked = client.session_reads()
    rows, reads = act()
    return rows, reads, client.session_reads() - asked - (asked - before)


def _median(
    form: str, when: str, batch: int, act: str, seen: list[tuple[list[Reads], int]]
) -> Count:
    tables = dict.fromkeys(one.table for reads, _ in seen for one in reads)
    return Count(
        form=form,
        when=when,
        batch=batch,
        act=act,
        reads=statistics.median(sum(one.reads for one in reads) for reads, _ in seen),
        lob_reads=statistics.median(sum(one.lob_reads for one in reads) for reads, _ in seen),
        tables={
            name: statistics.median(
                sum(one.reads + one.lob_reads for one in reads if one.table == name)
                for reads, _ in seen
            )
            for name in tables
        },
        session=statistics.median(pages for _, pages in seen),
    )
