"""Results on SQL Server: plans, and sessions that end, purge and wait beside each other."""

import json

import pytest

from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, run, tables
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = [pytest.mark.promise("P32"), pytest.mark.requires("genuine")]

KEPT_SECONDS = 600


@pytest.fixture
def kept(connection: Connection, queue: str) -> str:
    """Return the name of a queue that keeps results."""
    call(connection, "alter_queue", queue_name=queue, result_seconds=KEPT_SECONDS)
    return queue


def leased(connection: Connection, queue: str, *bodies: str) -> tuple[int, list[int]]:
    """Enqueue messages and lease them; return the claim and their ids."""
    ids = enqueue(connection, queue, *bodies)
    return dequeue(connection, queue, len(ids))[0].claim_id, ids


def many(connection: Connection, queue: str, count: int) -> None:
    """End `count` messages without a result."""
    for _ in range(count // 1000):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 1000)
        claim_id = dequeue(connection, queue, 1000)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim_id)


def cycle(connection: Connection, queue: str) -> list[Plan]:
    """End messages in every way, read their results, and purge them."""
    name = {"queue_name": queue}
    claim_id, ids = leased(connection, queue, *"ab")
    plans = called(
        connection, "Complete", **name, claim_id=claim_id, message_ids=str(ids), results="[1, 2]"
    )
    claim_id, [dead] = leased(connection, queue, "c")
    plans += called(connection, "FailNow", **name, claim_id=claim_id)
    plans += called(connection, "GetResult", **name, message_id=dead)
    plans += called(connection, "Reset", **name, message_ids=f"[{dead}]")
    plans += called(connection, "Cancel", **name, message_ids=f"[{dead}]")
    plans += called(connection, "WaitForResult", **name, message_id=dead, wait_seconds=0)
    plans += called(connection, "Health")
    pass_seconds(connection, queue, KEPT_SECONDS + 60)
    return plans + called(connection, "Maintain", **name)


@pytest.mark.pitfall("sqlserver 37")
@pytest.mark.promise("P13")
def test_results_are_found_by_seeks_with_early_plans(connection: Connection, kept: str) -> None:
    plans = cycle(connection, kept)
    many(connection, kept, 5000)
    plans += cycle(connection, kept)
    about = [plan for plan in plans if "result" in tables([plan])]
    assert about
    assert not [fault for fault in faults(about, small=STEPS) if " on " in fault]
    assert not [plan for plan in about if plan.is_parallel or plan.conversions]


@pytest.mark.pitfall("sqlserver 37")
def test_poll_runs_two_statements_for_any_backlog(connection: Connection, kept: str) -> None:
    many(connection, kept, 5000)
    [message_id] = enqueue(connection, kept, "x")
    poll = (
        "set nocount on; declare @pause int = 20, @answer nvarchar(max);"
        " exec rowq.InternalPollResult ?, ?, '21000101', @pause output, @answer output;"
        " select @pause"
    )
    rows, plans = run(connection, poll, kept, message_id)
    assert rows == [(40,)]
    assert len([plan for plan in plans if plan.accesses]) == 2


@pytest.mark.pitfall("sqlserver 38")
@pytest.mark.parametrize("result", ['ü/\\"', 1.5, True, [], {"a": "\U0001f680"}])
def test_wait_for_result_returns_any_json_unchanged(
    connection: Connection, kept: str, result: object
) -> None:
    claim_id, [message_id] = leased(connection, kept, "a")
    results = json.dumps([result])
    call(connection, "complete", queue_name=kept, claim_id=claim_id, results=[result])
    arguments = {"queue_name": kept, "message_id": message_id}
    [row] = call(connection, "get_result", **arguments)
    assert row.result == json.loads(results)[0]
    [row] = call(connection, "wait_for_result", **arguments, wait_seconds=0)
    assert row.answer["result"] == json.loads(results)[0]


@pytest.mark.pitfall("sqlserver 38")
@pytest.mark.promise("P17")
@pytest.mark.parametrize("setting", ["on", "off"])
def test_get_result_during_an_open_completion_is_leased(
    connection: Connection, connect: Connect, kept: str, setting: str
) -> None:
    """The error that identifies a locked row must not end the transaction."""
    reader = impatient(connect())
    claim_id, [message_id] = leased(connection, kept, "a")
    reader.execute(f"set xact_abort {setting}")
    arguments = {"queue_name": kept, "message_id": message_id}
    with transaction(connection):
        call(connection, "complete", queue_name=kept, claim_id=claim_id, results=[1])
        with transaction(reader):
            [sent] = enqueue(reader, kept, "sent")
            [row] = call(reader, "get_result", **arguments)
            assert (row.state, row.finished_at, row.result) == ("leased", None, None)
            assert value(reader, "select xact_state()") == 1
    reader.execute("set xact_abort off")
    assert call(reader, "get_result", **arguments)[0].result == 1
    assert [row.message_id for row in dequeue(reader, kept, 9)] == [sent]


@pytest.mark.pitfall("sqlserver 38")
@pytest.mark.promise("P19")
def test_open_purge_and_open_completion_do_not_block_others(
    connection: Connection, connect: Connect, kept: str
) -> None:
    other = impatient(connect())
    many(connection, kept, 1000)
    claim_id, [dead] = leased(connection, kept, "dead")
    call(connection, "fail_now", queue_name=kept, claim_id=claim_id)
    pass_seconds(connection, kept, KEPT_SECONDS + 60)
    claim_id, _ = leased(connection, kept, "a")
    with rolled_back(connection):
        call(connection, "maintain", queue_name=kept)
        call(other, "complete", queue_name=kept, claim_id=claim_id, results=[1])
    claim_id, _ = leased(connection, kept, "b")
    with rolled_back(connection):
        call(connection, "complete", queue_name=kept, claim_id=claim_id, results=[2])
        call(connection, "cancel", queue_name=kept, message_ids=[dead])
        call(other, "maintain", queue_name=kept)
    assert dialect_of(connection).stored(connection, kept)["result"] == 2


@pytest.mark.pitfall("sqlserver 38")
def test_get_result_during_an_open_purge_is_leased(
    connection: Connection, connect: Connect, kept: str
) -> None:
    reader = impatient(connect())
    claim_id, [message_id] = leased(connection, kept, "a")
    call(connection, "complete", queue_name=kept, claim_id=claim_id, results=[1])
    pass_seconds(connection, kept, KEPT_SECONDS + 60)
    arguments = {"queue_name": kept, "message_id": message_id}
    with rolled_back(connection):
        call(connection, "maintain", queue_name=kept)
        assert call(reader, "get_result", **arguments)[0].state == "leased"
    assert call(reader, "get_result", **arguments)[0].state == "completed"
