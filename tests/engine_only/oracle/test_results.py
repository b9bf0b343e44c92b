"""Results on Oracle: values, waiting sessions, plans and purge."""

import threading
from contextlib import closing
from typing import Any

import pytest

from tests.engine_only.oracle.plans import plans
from tests.engine_only.oracle.test_plans import LARGE, fill
from tests.engine_only.oracle.test_settings import STRANGE
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import (
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    make_dead,
    rolled_back,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.promise("P32")

SNAKE = "\N{SNAKE}"
"""A character of four bytes, which a CLOB counts as two."""
VALUES: tuple[Any, ...] = (
    10**60 + 1,
    SNAKE * 600,
    {"a,b": ["]", "[", '"', "\\"], "n": None},
    "x" * 70_000,
    [[], {}, [1, [2, {"three": "é"}]]],
    None,
    "",
    "null",
    0,
    False,
    f"é{SNAKE}" * 251,
)


@pytest.fixture
def kept(connection: Connection, queue: str) -> str:
    """Return the name of a queue that keeps results for an hour."""
    call(connection, "alter_queue", queue_name=queue, result_seconds=3600.0)
    return queue


def end_with(connection: Connection, queue: str, values: list[Any]) -> list[int]:
    """Complete messages with these results, by one call; return their ids."""
    enqueue(connection, queue, *["x"] * len(values))
    rows = dequeue(connection, queue, len(values))
    ids = [row.message_id for row in rows]
    given = {"queue_name": queue, "claim_id": rows[0].claim_id, "message_ids": ids}
    call(connection, "complete", **given, results=values)
    return ids


def end_of(connection: Connection, queue: str, message_id: int) -> tuple[str, Any]:
    """Return state and result of a message."""
    row = call_one(connection, "get_result", queue_name=queue, message_id=message_id)
    return row.state, row.result


@pytest.mark.pitfall("oracle 38")
def test_results_are_unchanged_at_every_position(connection: Connection, kept: str) -> None:
    for begin in range(len(VALUES)):
        values = [*VALUES[begin:], *VALUES[:begin]]
        ids = end_with(connection, kept, values)
        found = [end_of(connection, kept, message) for message in ids]
        assert found == [("completed", value) for value in values]
        for message, value in zip(ids, values, strict=True):
            given = {"queue_name": kept, "message_id": message, "wait_seconds": 0.0}
            answer = call_one(connection, "wait_for_result", **given).answer
            assert (answer["state"], answer["result"]) == ("completed", value)


@pytest.mark.parametrize("setting", STRANGE)
def test_results_do_not_depend_on_session_settings(
    connect: Connect, kept: str, setting: str
) -> None:
    strange = connect()
    for change in STRANGE[setting]:
        dialect_of(strange).execute(strange, f"alter session set {change}")
    [message] = end_with(strange, kept, [{"half": 0.5}])
    assert end_of(strange, kept, message) == ("completed", {"half": 0.5})
    [dead] = make_dead(strange, kept, "dead")
    assert end_of(strange, kept, dead) == ("dead", None)
    given = {"queue_name": kept, "message_id": dead, "wait_seconds": 0.5}
    answer = call_one(strange, "wait_for_result", **given).answer
    assert (answer["state"], answer["result"]) == ("dead", None)


@pytest.mark.pitfall("oracle 39")
def test_wait_for_result_works_in_a_serializable_session(
    connection: Connection, connect: Connect, kept: str
) -> None:
    [message] = enqueue(connection, kept, "x")
    strict = connect()
    dialect_of(strict).execute(strict, "alter session set isolation_level = serializable")
    answers: list[Any] = []

    def wait() -> None:
        given = {"queue_name": kept, "message_id": message, "wait_seconds": 20.0}
        answers.append(call_one(strict, "wait_for_result", **given).answer)

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    waiter.join(0.5)
    assert waiter.is_alive()
    claim = dequeue_one(connection, kept).claim_id
    call(connection, "complete", queue_name=kept, claim_id=claim, results=["done"])
    waiter.join(10)
    assert [(answer["state"], answer["result"]) for answer in answers] == [("completed", "done")]


@pytest.mark.promise("P13")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_results_are_found_and_purged_by_indexes(
    server: OracleServer, connection: Connection, kept: str, *, is_planned_while_empty: bool
) -> None:
    def every_read() -> None:
        [message, *_] = end_with(connection, kept, ["a", "b"])
        end_of(connection, kept, message)
        given = {"queue_name": kept, "message_id": message, "wait_seconds": 0.0}
        call(connection, "wait_for_result", **given)
        make_dead(connection, kept, "dead", priority=0)
        call(connection, "reset", queue_name=kept)
        call(connection, "health")
        pass_seconds(connection, kept, 3700)
        call(connection, "maintain", queue_name=kept)

    if is_planned_while_empty:
        every_read()
    fill(connection, kept, LARGE)
    call(connection, "purge_queue", queue_name=kept)
    every_read()
    found = [plan for plan in plans(server, connection) if plan.uses("ROWQ_RESULT")]
    assert found
    assert [plan.shown for plan in found if list(plan.faults())] == []


@pytest.mark.pitfall("oracle 40")
@pytest.mark.promise("P06")
def test_purge_keeps_a_result_rewritten_after_its_cursor(
    connection: Connection, connect: Connect, kept: str
) -> None:
    """The dead message is cancelled between the read and the lock, so its end is newer."""
    [old, other] = make_dead(connection, kept, "old", "other")
    pass_seconds(connection, kept, 3700)
    cleaner = connect(autocommit=False)
    opened = """
        begin
            open :results for
                select r.rowid
                from rowq_result r
                where r.finished_at < sys_extract_utc(systimestamp) - interval '3600' second(4)
                for update skip locked;
        end;
        """
    with closing(cleaner.cursor()) as cursor, closing(cleaner.cursor()) as found:
        cursor.execute(opened, {"results": found})
        call(connection, "cancel", queue_name=kept, message_ids=[old])
        assert len(found.fetchall()) == 1
    cleaner.rollback()
    with rolled_back(connection):
        call(connection, "cancel", queue_name=kept, message_ids=[other])
        call(cleaner, "maintain", queue_name=kept)
        cleaner.commit()
    assert end_of(connection, kept, old) == ("cancelled", None)
