"""Groups: plans and number of statements."""

import json
import time

import pytest

from tests.engine_only.mysql.costs import queue_id_of
from tests.engine_only.mysql.statements import accesses, run_by
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, transaction
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds, tick

TABLES = {"group_waiting", "group_slot", "deferred"}
TIME_SHIFT = " - interval "
"""Part of statements by which the tests move stored times."""


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


def cycle(connection: Connection, other: Connection, queue: str) -> None:
    """Run every statement about groups."""
    enqueue(connection, queue, "first", "second", "third", group_key="one", priority=1)
    enqueue(connection, queue, "late", group_key="late", delay_seconds=1)
    pass_seconds(other, queue, 2)
    call(connection, "promote", queue_name=queue)
    for routine in ("complete", "fail_now", "retry_later", "release", "complete", "complete"):
        [row] = dequeue(connection, queue, 1)
        call(connection, routine, queue_name=queue, claim_id=row.claim_id)
    rows = dequeue(connection, queue, 50)
    call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    call(connection, "reset", queue_name=queue)
    ids = enqueue(connection, queue, "a", "b", "c", group_key="cancelled")
    call(connection, "cancel", queue_name=queue, message_ids=ids[1:])
    call(connection, "get_message", queue_name=queue, message_id=ids[0])
    enqueue(connection, queue, "held", group_key="open", priority=0)
    [row] = dequeue(connection, queue, 1)
    with transaction(other):
        enqueue(other, queue, "coming", group_key="open")
        call(connection, "complete", queue_name=queue, claim_id=row.claim_id)
    tick(other, queue)
    call(connection, "maintain", queue_name=queue)
    call(connection, "alter_queue", queue_name=queue, group_limit=2)
    call(connection, "maintain", queue_name=queue)
    call(connection, "alter_queue", queue_name=queue, group_limit=1)


@pytest.mark.promise("P13")
def test_statements_about_groups_use_the_primary_key(
    connection: Connection, connect: Connect, queue: str
) -> None:
    messages = [{"body": "x", "group_key": f"group {number % 500}"} for number in range(4000)]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    session, other = connect(), connect()
    connection.execute("use rowq")
    ran = run_by(connection, session, lambda: cycle(session, other, queue))
    found = [
        access
        for statement in ran
        if TIME_SHIFT not in statement or "rowq.deferred" in statement
        for access in accesses(connection, statement)
        if access.table in TABLES and not statement.lstrip().startswith("insert")
    ]
    assert {access.table for access in found} == TABLES
    for access in found:
        assert access.key == "PRIMARY", access
        assert access.type in {"const", "eq_ref", "ref", "range"}, access
        assert "filesort" not in access.extra, access
        assert "temporary" not in access.extra, access


def statements(admin: Connection, session: Connection, queue: str, group: bool) -> list[str]:
    """Return the statements on rows when a message ends and another one waits."""
    arguments = {"group_key": "g"} if group else {"dedup_key": "k"}
    enqueue(session, queue, "ends", **arguments)
    enqueue(session, queue, "waits", **arguments)
    claim = dequeue(session, queue)[0].claim_id
    ran = run_by(
        admin, session, lambda: call(session, "complete", queue_name=queue, claim_id=claim)
    )
    for row in dequeue(session, queue, 10):
        call(session, "complete", queue_name=queue, claim_id=row.claim_id)
    return [
        statement for statement in ran if "rowq." in statement and not statement.startswith("call ")
    ]


def test_passing_a_slot_on_takes_at_most_6_statements(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect()
    keyed = statements(connection, session, queue, group=False)
    passed_on = statements(connection, session, queue, group=True)
    assert 0 < len(passed_on) - len(keyed) <= 6, passed_on


def test_releasing_thousands_of_slots_reads_their_list_once(
    connection: Connection, queue: str
) -> None:
    """Reading element by element took MariaDB 19 seconds."""
    links = json.dumps([[number, None, "6b6579", 0] for number in range(5000)])
    started_at = time.monotonic()
    connection.execute(
        "call rowq.internal_release_group_slots(%s, %s, true)",
        [queue_id_of(connection, queue), links],
    )
    assert time.monotonic() - started_at < 3
