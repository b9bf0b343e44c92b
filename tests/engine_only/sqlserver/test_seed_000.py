"""The experiment of seed 000 on SQL Server: its forms and its counters."""

from __future__ import annotations

from contextlib import closing

import pytest

from benchmarks.rowq_bench.sqlserver import seed_000
from benchmarks.rowq_bench.sqlserver.seed_000 import FORMS, Client, Size, measure
from benchmarks.rowq_bench.sqlserver.statistics_io import Reads, begin, parse, run
from tests.engines.base import Connection, Server

COUNTERS = "logical reads {}, physical reads 0, page server reads 0, read-ahead reads 0, "
LOBS = "page server read-ahead reads 0, lob logical reads {}, lob physical reads 0, "
SAID = f"[Some][driver]Table '{{}}'. Scan count 1, {COUNTERS}{LOBS}lob read-ahead reads 0."

# Babelfish has no output of a joined table's columns, and a fault in enqueue_batch.
ON_BABELFISH = {"queue_slow", "split_tables"}


def test_reads_are_added_up_by_table_and_temporary_ones_have_no_name() -> None:
    said = [
        SAID.format("#A1B2C3D4", 7, 0),
        SAID.format("queue", 100, 20) + "\n" + SAID.format("Worktable", 5, 3),
        "something else",
        SAID.format("queue", 1, 2),
    ]
    assert parse(said) == [Reads("(temporary)", 12, 3), Reads("queue", 101, 22)]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=() if form in ON_BABELFISH else pytest.mark.requires("genuine"))
        for form in FORMS
    ],
)
def test_each_form_gives_every_message_once(server: Server, empty_database: str, form: str) -> None:
    size = Size(messages=250, characters=300)
    with closing(server.connect(empty_database)) as connection:
        client = Client(form, connection)
        client.install(empty_database)
        client.fill(size)
        found: list[int] = []
        while taken := client.dequeue(100)[0]:
            found += [row[1 if form == "rowq" else 0] for row in taken]
            client.complete(taken)
    assert len(found) == len(set(found)) == size.messages


@pytest.mark.requires("genuine")
def test_what_a_call_reads_is_what_the_messages_say(connection: Connection, queue: str) -> None:
    begin(connection)
    rows, reads = run(connection, "exec rowq.QueueStats @queue_name = ?", queue)
    assert len(rows) == 1
    assert "queue" in {one.table for one in reads}
    assert sum(one.reads for one in reads) > 0


@pytest.mark.requires("genuine")
def test_the_experiment_counts_every_form(empty_database: str) -> None:
    size = Size(messages=800, characters=300, samples=1)
    counts = list(measure("one_statement", empty_database, size))
    assert {(one.when, one.batch, one.act) for one in counts} == {
        (when, batch, act)
        for when in ("full", "half")
        for batch in seed_000.BATCHES
        for act in ("dequeue", "complete")
    }
    for one in counts:
        # The session may read a page of the catalog besides.
        assert one.reads + one.lob_reads <= one.session <= one.reads + one.lob_reads + 50
