"""Results on MariaDB and MySQL: statements and plans, with and without them, and their purge."""

import json
import re
import time
from typing import Any

import pytest

from tests.engine_only.mysql.costs import cost_of_purge, queue_id_of
from tests.engine_only.mysql.statements import Access, accesses, run_by
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, make_dead, refused
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

LONG_DIGITS = "1" * 101
"""One digit more than a number may have."""


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name, max_attempts=1)
    return queue_name


@pytest.fixture
def kept(connection: Connection, queue: str) -> str:
    """Return a queue that keeps results."""
    call(connection, "alter_queue", queue_name=queue, result_seconds=600)
    return queue


def complete(session: Connection, queue: str, size: int, **given: Any) -> list[int]:
    """Lease and complete messages; return their ids."""
    rows = dequeue(session, queue, size)
    call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id, **given)
    return [row.message_id for row in rows]


def cycle(session: Connection, queue: str, is_open: bool) -> None:
    """End messages in every way, look at their results, and keep house."""
    for size in (1, 3):
        enqueue(session, queue, *"x" * size)
        complete(session, queue, size)
    enqueue(session, queue, "x")
    (message,) = complete(session, queue, 1, results=[{"a": 1}])
    dead, revived = make_dead(session, queue, "x", "y")
    call(session, "cancel", queue_name=queue, message_ids=[dead])
    call(session, "reset", queue_name=queue, message_ids=[revived])
    complete(session, queue, 1)
    for one in (message, dead):
        call(session, "get_result", queue_name=queue, message_id=one)
    if not is_open:
        call(session, "wait_for_result", queue_name=queue, message_id=dead, wait_seconds=0)
    call(session, "maintain", queue_name=queue)
    call(session, "health")


def check(access: Access) -> None:
    """Hold a plan that reads results to what the sources promise."""
    assert "filesort" not in access.extra, access
    if access.statement.lstrip().startswith("insert"):
        assert access.type == "ALL"  # explain's word for a table that is written
    elif access.key == "PRIMARY":
        # Health seeks the first row of a range.
        is_seek = access.type == "range" and "limit 1" in access.statement
        assert is_seek or access.type in {"const", "eq_ref"}, access
    else:
        assert access.key == "result_finished_ix", access
        assert "Using index;" not in f"{access.extra};", access
        # The look for idle queues reads from the start of each, and measures how long that takes.
        looks_for_idle = "sysdate(6)" in access.statement
        assert access.type == "range" or (looks_for_idle and access.type == "ref"), access


@pytest.mark.promise("P13", "P32")
@pytest.mark.parametrize("level", [None, "repeatable read"])
def test_no_statement_scans_results_or_sorts_them(
    connection: Connection, connect: Connect, kept: str, level: str | None
) -> None:
    session = connect()

    def work() -> None:
        if level is not None:
            session.execute(f"set transaction isolation level {level}")
            session.execute("begin")
        cycle(session, kept, is_open=level is not None)
        session.commit()

    enqueue(connection, kept, *"x" * 20)
    complete(connection, kept, 20)
    connection.execute(
        "update rowq.result set finished_at = finished_at - interval 1 day where message_id > 0"
    )
    connection.execute("use rowq")
    statements = [text for text in run_by(connection, session, work) if "rowq.result" in text]
    found = [
        access
        for statement in statements
        for access in accesses(connection, statement)
        if access.table == "result"
    ]
    keys = {access.key for access in found}
    assert "result_finished_ix" in keys
    # MySQL's statements come without their values, and a key that is not there has no plan.
    assert "PRIMARY" in keys or "mariadb" not in connection.server_version.lower()
    for access in found:
        check(access)


@pytest.mark.promise("P32")
def test_only_a_queue_that_keeps_results_leaves_the_fast_path(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect()
    connection.execute("use rowq")

    def count(**given: Any) -> int:
        enqueue(connection, queue, "x")
        claim = dequeue(session, queue)[0].claim_id
        ran = run_by(
            connection,
            session,
            lambda: call(session, "complete", queue_name=queue, claim_id=claim, **given),
        )
        return len(ran)

    count()
    without = count()
    call(connection, "alter_queue", queue_name=queue, result_seconds=60)
    assert count() > without
    assert count(results=[1]) > without
    call(connection, "alter_queue", queue_name=queue, result_seconds=0)
    assert count() == without


@pytest.mark.promise("P32")
@pytest.mark.parametrize("backlog", [0, 3000])
def test_a_look_reads_the_result_by_its_key_and_nothing_else(
    connection: Connection, connect: Connect, kept: str, backlog: int
) -> None:
    """So fifty waiters cost no more than fifty such looks each quarter of a second."""
    (message,) = enqueue(connection, kept, "x")
    if backlog:
        messages = [{"body": "x"}] * backlog
        call(connection, "enqueue_batch", queue_name=kept, messages=messages)
    session = connect()
    connection.execute("use rowq")
    ran = run_by(
        connection,
        session,
        lambda: call_one(
            session, "wait_for_result", queue_name=kept, message_id=message, wait_seconds=2
        ),
    )
    read = [re.findall(r"(?:from|join) rowq\.(\w+)", text) for text in ran]
    tables = [names for names in read if names]
    looks = tables.count(["queue", "result"])
    assert 7 <= looks <= 14
    # The first look and the last one ask where the message is, and none of the others does.
    others = [names for names in tables if names != ["queue", "result"]]
    assert len(others) <= 2 * 12
    assert tables[1:-1].count(["message"]) <= 2


def fill(connection: Connection, queue: str, count: int) -> None:
    """Let messages end whose results are overdue at once."""
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * count)
    complete(connection, queue, count)
    time.sleep(0.005)


def cost(connection: Connection, queue: str) -> int:
    """Return the pages that it takes to purge one result, between the rescans of maintain."""
    purge = "call rowq.internal_purge_results(%s, 0.001, 10000, @purged)"
    queue_id = queue_id_of(connection, queue)
    return cost_of_purge(
        connection,
        lambda: fill(connection, queue, 1),
        lambda: connection.execute(purge, [queue_id]),
        lambda: results(connection, queue) == 0,
    )


def results(connection: Connection, queue: str) -> int:
    """Return how many results are kept."""
    ((count,),) = connection.execute(
        "select count(*) from rowq.result where message_id > 0 and queue_id = %s",
        [queue_id_of(connection, queue)],
    ).fetchall()
    return int(count)


@pytest.mark.slow("an old view beside many rows", ci="mariadb")
@pytest.mark.promise("P13", "P32")
@pytest.mark.usefixtures("old_view")
def test_an_old_view_does_not_make_a_purge_dearer(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, result_seconds=0.001)
    costs = []
    for rounds in (5, 15):
        for _ in range(rounds):
            fill(connection, queue, 1000)
            call(connection, "maintain", queue_name=queue)
        assert results(connection, queue) == 0
        costs.append(cost(connection, queue))
    first, last = costs
    assert last <= 1.2 * first + 10, f"{first} pages beside 5,000 dead rows, {last} beside 20,000"


@pytest.mark.promise("P19", "P32")
def test_an_error_in_results_is_a_warning_and_the_rest_goes_on(
    connection: Connection, kept: str
) -> None:
    call(connection, "alter_queue", queue_name=kept, history_days=2)
    fill(connection, kept, 3)
    enqueue(connection, kept, "delayed", delay_seconds=10)
    dialect_of(connection).pass_seconds(connection, kept, 4 * 86400)
    # The floor moves once the rows are deleted. (No handler of MariaDB 11.8 sees an error of a
    # trigger in a delete from several tables.)
    connection.execute(
        "create trigger rowq.refuses before update on rowq.lane for each row"
        " if new.lane = -7 and not exists (select 1 from rowq.result r"
        " where r.queue_id = new.queue_id and r.message_id > 0)"
        " then signal sqlstate '45000' set message_text = 'broken'; end if"
    )
    try:
        row = call_one(connection, "maintain", queue_name=kept)
    finally:
        connection.execute("drop trigger rowq.refuses")
    assert (row.promoted, row.purged, results(connection, kept)) == (1, 3, 3), "history only"
    assert call_one(connection, "maintain", queue_name=kept).purged == 3


@pytest.mark.promise("P19", "P32")
def test_a_purge_that_is_open_holds_up_no_housekeeping(
    connection: Connection, connect: Connect, kept: str
) -> None:
    fill(connection, kept, 3)
    enqueue(connection, kept, "delayed", delay_seconds=10)
    dialect_of(connection).pass_seconds(connection, kept, 86400)
    holder = connect()
    holder.execute("begin")
    holder.execute(
        "call rowq.internal_purge_results(%s, 600, 1, @purged)", [queue_id_of(connection, kept)]
    )
    connection.execute("set session innodb_lock_wait_timeout = 1")
    row = call_one(connection, "maintain", queue_name=kept)
    assert (row.promoted, row.purged) == (1, 0), "who purges is elected"
    holder.rollback()
    assert call_one(connection, "maintain", queue_name=kept).purged == 3


@pytest.mark.promise("P19", "P32", "P37")
@pytest.mark.parametrize("table", ["result", "history"])
@pytest.mark.parametrize(("budget", "purged"), [(-1, 10), (3600, 100)])
def test_more_than_a_batch_goes_only_while_there_is_time(
    connection: Connection, kept: str, table: str, budget: int, purged: int
) -> None:
    queue_id = queue_id_of(connection, kept)
    call(connection, "alter_queue", queue_name=kept, history_days=2)
    columns, values = {
        "result": ("finished_at, state", "'completed'"),
        "history": ("ended_at, attempt, claim_id, leased_at, outcome", "1, 1, now(6), 'completed'"),
    }[table]
    connection.execute(
        f"insert into rowq.{table} (queue_id, message_id, {columns})"
        f" select %s, 1000000000 + j.place, utc_timestamp(6) - interval 3 day, {values}"
        " from json_table(concat('[0', repeat(',0', 104), ']'),"
        " '$[*]' columns (place for ordinality)) j",
        [queue_id],
    )
    what = {"result": "results", "history": "history"}[table]
    connection.execute(
        "call rowq.internal_maintain_retention("
        "%s, %s, 10, utc_timestamp(6) + interval %s second, @purged)",
        [queue_id, what, budget],
    )
    assert connection.execute("select @purged").fetchone() == (purged,)


@pytest.mark.promise("P15", "P32")
@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        (json.dumps(["x" * 70000 + LONG_DIGITS]), True),
        (json.dumps(['\\"' * 40000 + LONG_DIGITS]), True),
        (json.dumps(["x" * 9990 + "\\" * 5, LONG_DIGITS, "y" * 70000]), True),
        (f"[[{','.join(['123.5'] * 20000)}]]", True),
        (f"[[{','.join(['123.5'] * 20000)},{LONG_DIGITS}]]", False),
        (f"[[{json.dumps('x' * 70000)},1e250]]", False),
        (f"[[{' ' * 9950}{LONG_DIGITS}, {json.dumps('x' * 70000)}]]", False),
    ],
    ids=lambda value: str(value)[:12],
)
def test_digits_of_long_results_are_counted_outside_of_strings(
    connection: Connection, kept: str, text: str, is_good: bool
) -> None:
    enqueue(connection, kept, "x", "y", "z")
    results = json.loads(text)
    rows = dequeue(connection, kept, len(results))
    arguments = {
        "queue_name": kept,
        "claim_id": rows[0].claim_id,
        "message_ids": [row.message_id for row in rows],
    }
    ids = json.dumps(arguments["message_ids"])
    if is_good:
        connection.execute(
            "call rowq.complete(%s, %s, %s, %s)", [kept, rows[0].claim_id, ids, text]
        )
        found = [
            call_one(connection, "get_result", queue_name=kept, message_id=row.message_id).result
            for row in rows
        ]
        assert found == results
    else:
        assert "digits" in refused(connection, "RQ711", "complete", **arguments, results=results)
