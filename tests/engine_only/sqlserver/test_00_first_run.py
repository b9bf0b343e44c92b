"""Behavior that the documentation of SQL Server leaves open; rowq relies on a guess.

These tests run first. Their docstrings name the remedy if one fails.
"""

from contextlib import closing
from typing import Any

import pytest

import rowq
from tests.engine_only.sqlserver.sessions import value
from tests.engine_only.sqlserver.showplan import run
from tests.engines.base import Connection, Server
from tests.helpers.calls import bodies, call, dequeue, enqueue, refused, rolled_back

pytestmark = pytest.mark.requires("genuine")

COMPILED_LATER = ["Enqueue", "EnqueueBatch", "InternalEnqueueBatch", "InternalNextMessageId"]


@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ["enqueue", "enqueue_batch", "dequeue_fast", "complete"])
def test_refusal_keeps_a_transaction_with_xact_abort(
    connection: Connection, queue: str, routine: str
) -> None:
    """The error is raised with xact_abort off, in a caller that has it on.

    If it fails: the page must state that a refusal ends the transaction of a caller with
    xact_abort on; nothing in T-SQL prevents it.
    """
    given: dict[str, dict[str, Any]] = {
        "complete": {"claim_id": 1},
        "enqueue_batch": {"messages": []},
    }
    connection.execute("set xact_abort on")
    with rolled_back(connection):
        enqueue(connection, queue, "before")
        refused(connection, "RQ701", routine, queue_name=f"{queue} ", **given.get(routine, {}))
        assert value(connection, "select xact_state()") == 1
        enqueue(connection, queue, "after")
    connection.execute("set xact_abort off")


@pytest.mark.promise("P16")
@pytest.mark.parametrize("routine", ["enqueue", "enqueue_batch", "dequeue_fast"])
def test_routine_compiles_while_rowcount_is_set(
    connection: Connection, queue: str, routine: str
) -> None:
    """Error 11739 forbids `next value for` with rowcount, possibly at compilation.

    If it fails: callers must not set rowcount.
    """
    for name in (*COMPILED_LATER, "DequeueFast", "InternalDequeue", "InternalPopReady"):
        connection.execute(f"exec sys.sp_recompile N'rowq.{name}'")
    arguments: dict[str, Any] = {"enqueue": {"body": "a"}, "enqueue_batch": {"messages": [{}, {}]}}
    connection.execute("set rowcount 1")
    found = call(connection, routine, queue_name=queue, **arguments.get(routine, {}))
    connection.execute("set rowcount 0")
    assert len(found) == {"enqueue": 1, "enqueue_batch": 2, "dequeue_fast": 0}[routine]


@pytest.mark.promise("P12")
@pytest.mark.parametrize("count", [2, 1000])
def test_keys_of_a_batch_are_inserted_in_order(
    connection: Connection, queue: str, count: int
) -> None:
    """A sort below the insert prevents a deadlock of two batches with the same keys.

    If it fails: two batches with the same keys may deadlock: error 1205 in a caller's
    transaction. reset has the same statement.
    """
    keys = ", ".join(f'{{"dedup_key": "{number % 7}-{number}"}}' for number in range(count))
    statement = "exec rowq.EnqueueBatch @queue_name = ?, @messages = ?"
    _, plans = run(connection, statement, queue, f"[{keys}]")
    [inserting] = [plan for plan in plans if "insert into rowq.dedup" in plan.text]
    assert {"Sort", "Clustered Index Insert"} <= inserting.operators
    assert not inserting.is_parallel


@pytest.mark.promise("P06", "P07")
def test_dequeue_skips_rows_under_optimized_locking(server: Server, optimized: str) -> None:
    """With optimized locking a new row has no row lock; readpast must skip it.

    If it fails: a dequeue waits for open enqueues; turn optimized_locking off.
    """
    with closing(server.connect(optimized)) as one, closing(server.connect(optimized)) as other:
        rowq.Queue(one).create_queue("q")
        other.execute("set lock_timeout 0")
        enqueue(one, "q", *"ab")
        with rolled_back(one):
            assert bodies(dequeue(one, "q")) == ["a"]
            enqueue(one, "q", "uncommitted")
            assert bodies(dequeue(other, "q", 3)) == ["b"]
            assert dequeue(other, "q", 3) == []
            call(other, "maintain", queue_name="q")
        assert bodies(dequeue(other, "q", 3)) == ["a"]
