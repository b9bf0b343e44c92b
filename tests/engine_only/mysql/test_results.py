"""Results on MariaDB and MySQL: statements, plans and purge."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine_only.mysql.costs import cost_of_purge, queue_id_of
from tests.engine_only.mysql.statements import Access, accesses, run_by
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, make_dead, refused
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = pytest.mark.promise("P32")

LONG_DIGITS = "1" * 101
"""One digit more than allowed."""


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
    """End messages in every way, read their results, and maintain."""
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
    """Check that a plan reads results by a key."""
    assert "filesort" not in access.extra, access
    if access.statement.lstrip().startswith("insert"):
        assert access.type == "ALL"  # explain prints this for a table that is written
    elif access.key == "PRIMARY":
        # Health seeks the first row of a range.
        is_seek = access.type == "range" and "limit 1" in access.statement
        assert is_seek or access.type in {"const", "eq_ref"}, access
    else:
        assert access.key == "result_finished_ix", access
        assert "Using index;" not in f"{access.extra};", access
        # find_idle reads from the start of each queue, and measures the time.
        finds_idle = "sysdate(6)" in access.statement
        assert access.type == "range" or (finds_idle and access.type == "ref"), access


def accesses_of(
    connection: Connection,
    session: Connection,
    work: Callable[[Connection], object],
    table: str,
    level: str | None,
) -> list[Access]:
    """Run `work` in a session, in a transaction if it has a level; return accesses to a table."""

    def run() -> None:
        if level is not None:
            session.execute(f"set transaction isolation level {level}")
            session.execute("begin")
        work(session)
        session.commit()

    connection.execute("use rowq")
    statements = [text for text in run_by(connection, session, run) if f"rowq.{table}" in text]
    found = [access for statement in statements for access in accesses(connection, statement)]
    return [access for access in found if access.table == table]


@pytest.mark.promise("P13")
@pytest.mark.parametrize("level", [None, "repeatable read"])
def test_results_are_never_scanned_or_sorted(
    connection: Connection, connect: Connect, kept: str, level: str | None
) -> None:
    enqueue(connection, kept, *"x" * 20)
    complete(connection, kept, 20)
    connection.execute(
        "update rowq.result set finished_at = finished_at - interval 1 day where message_id > 0"
    )
    found = accesses_of(
        connection,
        connect(),
        lambda session: cycle(session, kept, is_open=level is not None),
        "result",
        level,
    )
    keys = {access.key for access in found}
    assert "result_finished_ix" in keys
    # MySQL logs statements without values, and a key without a row has no plan.
    assert "PRIMARY" in keys or "mariadb" not in connection.server_version.lower()
    for access in found:
        check(access)


def test_only_a_queue_with_results_leaves_the_fast_path(
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


@pytest.mark.parametrize("backlog", [0, 3000])
def test_poll_reads_only_the_result_by_its_key(
    connection: Connection, connect: Connect, kept: str, backlog: int
) -> None:
    """50 waiters cost at most 50 such polls in 250 ms."""
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
    assert 7 <= tables.count(["queue", "result"]) <= 14
    # Only the first and the last poll read the message.
    others = [names for names in tables if names != ["queue", "result"]]
    assert len(others) <= 2 * 12
    assert tables[1:-1].count(["message"]) <= 2


def fill(connection: Connection, queue: str, count: int) -> None:
    """End messages whose results are overdue at once."""
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * count)
    complete(connection, queue, count)
    time.sleep(0.005)


def cost(connection: Connection, queue: str) -> int:
    """Return the pages read to purge one result, between rescans of maintain."""
    purge = "call rowq.internal_purge_results(%s, 0.001, 10000, @purged)"
    queue_id = queue_id_of(connection, queue)
    return cost_of_purge(
        connection,
        lambda: fill(connection, queue, 1),
        lambda: connection.execute(purge, [queue_id]),
        lambda: count_rows(connection, queue) == 0,
    )


def count_rows(connection: Connection, queue: str, table: str = "result") -> int:
    """Count a queue's rows of result or history, without sentinel rows."""
    ((count,),) = connection.execute(
        f"select count(*) from rowq.{table} where message_id > 0 and queue_id = %s",
        [queue_id_of(connection, queue)],
    ).fetchall()
    return int(count)


@pytest.mark.slow("an old view beside many rows", ci="mariadb")
@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_old_read_view_does_not_slow_down_a_purge(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, result_seconds=0.001)
    costs = []
    for rounds in (5, 15):
        for _ in range(rounds):
            fill(connection, queue, 1000)
            call(connection, "maintain", queue_name=queue)
        assert count_rows(connection, queue) == 0
        costs.append(cost(connection, queue))
    first, last = costs
    assert last <= 1.2 * first + 10, f"{first} pages beside 5,000 dead rows, {last} beside 20,000"


@pytest.mark.promise("P19", "P37")
@pytest.mark.parametrize(("table", "lane"), [("result", -7), ("history", -8)])
def test_maintain_continues_after_an_error_in_a_purge(
    connection: Connection, kept: str, table: str, lane: int
) -> None:
    call(connection, "alter_queue", queue_name=kept, history_days=2)
    fill(connection, kept, 3)
    enqueue(connection, kept, "delayed", delay_seconds=10)
    dialect_of(connection).pass_seconds(connection, kept, 4 * 86400)
    # Fail when the floor moves after the delete: no handler of MariaDB 11.8 catches an error of a
    # trigger in a multi-table delete.
    connection.execute(
        "create trigger rowq.refuses before update on rowq.lane for each row"
        f" if new.lane = {lane} and not exists (select 1 from rowq.{table} r"
        " where r.queue_id = new.queue_id and r.message_id > 0)"
        " then signal sqlstate '45000' set message_text = 'broken'; end if"
    )
    try:
        row = call_one(connection, "maintain", queue_name=kept)
    finally:
        connection.execute("drop trigger rowq.refuses")
    assert (row.promoted, row.purged) == (1, 3), "the other table only"
    assert call_one(connection, "maintain", queue_name=kept).purged == 3


@pytest.mark.promise("P19")
def test_open_purge_of_results_does_not_block_maintain(
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
    assert (row.promoted, row.purged) == (1, 0), "the open purge is elected"
    holder.rollback()
    assert call_one(connection, "maintain", queue_name=kept).purged == 3


@pytest.mark.promise("P19", "P37")
@pytest.mark.parametrize("table", ["result", "history"])
@pytest.mark.parametrize(("budget", "purged"), [(-1, 10), (3600, 100)])
def test_retention_purges_more_batches_only_within_its_time(
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


@pytest.mark.promise("P15")
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
def test_digits_of_results_are_counted_outside_strings(
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
