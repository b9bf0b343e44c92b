"""Inspection routines read a page by its key, past dead rows and earlier pages."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine_only.mysql.costs import fewest_pages, queue_id_of, rescan, rows
from tests.engine_only.mysql.statements import accesses, run_by
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue
from tests.helpers.queues import Connect

pytestmark = pytest.mark.slow("fills large tables")

LARGE = 100_000
PAGE = 50
NEWEST = 2**63 - 1
LOOKED_AT = {"dead", "delayed", "claim", "message", "dedup", "lane"}
SMALL = 150
"""Pages of a call that finds little; scanning the dead rows costs hundreds more."""

DEAD = (
    "insert into rowq.claim"
    " (queue_id, claim_id, lease_until, lane, attempt, first_id, last_id)"
    " select queue_id, message_id, utc_timestamp(6), lane, 1, message_id, message_id"
    " from rowq.ready where queue_id = %s and message_id > 0",
    "delete from rowq.claim where queue_id = %s and claim_id > 0",
    "insert into rowq.delayed (queue_id, due_at, message_id, lane)"
    " select queue_id, utc_timestamp(6) - interval 1 hour, message_id, lane"
    " from rowq.ready where queue_id = %s and message_id > 0",
    "delete from rowq.delayed where queue_id = %s and message_id > 0",
    "delete from rowq.ready where queue_id = %s and message_id > 0",
)
"""Statements that make dead rows under an old read view."""

Inspection = Callable[[Connection], list[Any]]


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


FILL = (
    "insert into rowq.dead (queue_id, message_id, lane, attempt, died_at)"
    " select queue_id, message_id, lane, 1, utc_timestamp(6)"
    " from rowq.ready where queue_id = %s and message_id > 0",
    "insert into rowq.delayed (queue_id, due_at, message_id, lane)"
    " select queue_id, utc_timestamp(6) + interval 1 hour, message_id, lane"
    " from rowq.ready where queue_id = %s and message_id > 0",
    "insert into rowq.dedup (queue_id, dedup_key, message_id)"
    " select queue_id, cast(message_id as char), message_id"
    " from rowq.ready where queue_id = %s and message_id > 0",
    DEAD[0],
    DEAD[-1],
)
"""Statements that make live rows."""


def fill(connection: Connection, queue: str) -> None:
    """Insert 100,000 messages, each dead, delayed, with a key and leased at once."""
    typed = [{"message_type": "mail" if number % 2 else "other"} for number in range(10_000)]
    for _ in range(LARGE // 10_000):
        call(connection, "enqueue_batch", queue_name=queue, messages=typed)
    queue_id = queue_id_of(connection, queue)
    for statement in FILL:
        connection.execute(statement, [queue_id])


def inspections(
    connection: Connection, queue: str, key: str | None = None
) -> dict[str, Inspection]:
    """Return calls that read a page at the start, in the middle and at the end.

    key: an existing dedup key. Default: the id of a delayed message.
    """
    own = {"queue_name": queue}
    dead = call(connection, "list_dead", **own, max_messages=10_000)[-1].message_id
    delayed = call(connection, "list_delayed", **own, max_messages=10_000)[-1]
    key = str(delayed.message_id) if key is None else key
    claim = call(connection, "list_claims", **own, max_claims=10_000)[-1].claim_id
    page = {"max_messages": PAGE}
    half: dict[str, Any] = {"max_messages": PAGE // 2, "message_type": "mail"}
    after = {"after_due_at": delayed.due_at, "after_message_id": delayed.message_id}

    def read(routine: str, **arguments: Any) -> Inspection:
        return lambda session: call(session, routine, **arguments)

    return {
        "dead": read("list_dead", **own, **page),
        "dead, later": read("list_dead", **own, **page, after_message_id=dead),
        "dead, newest": read("list_dead", **own, **page, before_message_id=NEWEST),
        "dead, of a type": read("list_dead", **own, **half),
        "dead, newest of a type": read("list_dead", **own, **half, before_message_id=dead),
        "delayed": read("list_delayed", **own, **page),
        "delayed, later": read("list_delayed", **own, **page, **after),
        "claims": read("list_claims", **own, max_claims=PAGE),
        "claims, later": read("list_claims", **own, max_claims=PAGE, after_claim_id=claim),
        "by key": read("find_message", **own, dedup_key=key),
        "by no key": read("find_message", **own, dedup_key="no"),
    }


@pytest.mark.timeout(300)
@pytest.mark.promise("P13")
def test_inspection_pages_are_read_by_key(
    connection: Connection, connect: Connect, queue: str
) -> None:
    fill(connection, queue)
    session = connect()
    for name, inspection in inspections(connection, queue).items():
        found, count = inspect(session, inspection)
        assert len(found) == {"by key": 1, "by no key": 0}.get(
            name, PAGE // 2 if "type" in name else PAGE
        ), name
        # Rows of temporary tables count too.
        assert count <= 20 * PAGE, (name, count)
    ids = [row.message_id for row in call(connection, "list_dead", queue_name=queue)]
    [newest] = call(
        connection, "list_dead", queue_name=queue, max_messages=1, before_message_id=NEWEST
    )
    arguments: dict[str, Any] = {"message_ids": [ids[0], newest.message_id]}
    assert inspect(session, lambda own: [discard(own, queue, **arguments)])[1] <= 20 * PAGE
    # It reads 10,000 at most, as some may be locked.
    assert inspect(session, lambda own: [discard(own, queue, max_messages=PAGE)])[1] <= 10 * 10_000


def inspect(session: Connection, inspection: Inspection) -> tuple[list[Any], int]:
    """Return the rows of a call, and how many rows its plans touched."""
    found: list[Any] = []
    count = rows(session, lambda: found.extend(inspection(session)))
    return found, count


def discard(session: Connection, queue: str, **arguments: Any) -> int:
    return int(call_one(session, "discard_dead", queue_name=queue, **arguments).removed)


@pytest.mark.promise("P13")
@pytest.mark.parametrize("level", [None, "repeatable read"])
def test_inspection_statements_use_the_primary_key_in_order(
    connection: Connection, connect: Connect, queue: str, level: str | None
) -> None:
    enqueue(connection, queue, "key", dedup_key="key", delay_seconds=1000)
    for number in range(4):
        enqueue(connection, queue, "x", message_type="mail", delay_seconds=1000 + number)
    enqueue(connection, queue, *["x"] * 10)
    claim = dequeue(connection, queue, 5)[0].claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim)
    dequeue(connection, queue, 2)
    session = connect()
    # For a missing key the plan names no table: MariaDB reads before it plans.
    all_inspections = inspections(connection, queue, "key")

    def work() -> None:
        if level is not None:
            session.execute(f"set transaction isolation level {level}")
            session.execute("begin")
        for inspection in all_inspections.values():
            inspection(session)
        discard(session, queue, message_type="mail")
        discard(session, queue, max_messages=2)
        if level is not None:
            session.rollback()

    connection.execute("use rowq")
    found = [
        access
        for statement in run_by(connection, session, work)
        for access in accesses(connection, statement)
        if access.table in LOOKED_AT
    ]
    assert {access.table for access in found} == LOOKED_AT
    for access in found:
        assert access.key == "PRIMARY", access
        assert access.type in {"const", "eq_ref", "ref", "range"}, access
        assert "filesort" not in access.extra, access
        assert "temporary" not in access.extra, access


@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_inspection_skips_dead_rows_under_an_old_view(
    connection: Connection, connect: Connect, queue: str
) -> None:
    queue_id = queue_id_of(connection, queue)
    for _ in range(4):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{}] * 10_000)
    for statement in DEAD:
        connection.execute(statement, [queue_id])
    enqueue(connection, queue, "leased")
    dequeue(connection, queue)
    enqueue(connection, queue, "delayed", delay_seconds=1000)
    rescan(connection, queue)
    session = connect()

    def claims() -> None:
        assert len(call(session, "list_claims", queue_name=queue)) == 1

    def delayed() -> None:
        assert len(call(session, "list_delayed", queue_name=queue)) == 1

    assert fewest_pages(connection, claims) < SMALL
    assert fewest_pages(connection, delayed) < SMALL
    # Without floors they scan the dead rows.
    connection.execute(
        "update rowq.lane set floor = 0 where queue_id = %s and lane < 0", [queue_id]
    )
    assert fewest_pages(connection, claims) > SMALL
    assert fewest_pages(connection, delayed) > SMALL


DEAD_TIMES = {
    "deferred": "(queue_id, due_at, deferred_id) select queue_id, {time}, message_id",
    "expiry": "(queue_id, expires_at, expiry_id, message_id)"
    " select queue_id, {time}, message_id, message_id",
    "result": "(queue_id, message_id, finished_at, state)"
    " select queue_id, message_id, {time}, 'completed'",
    "history": "(queue_id, ended_at, message_id, claim_id, attempt, leased_at, outcome)"
    " select queue_id, {time}, message_id, message_id, 1, {time}, 'completed'",
}
"""Columns and values of the other tables that health reads from the low end."""


@pytest.mark.slow("fills many tables")
@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_health_costs_the_same_under_an_old_view(connection: Connection, queue: str) -> None:
    queue_id = queue_id_of(connection, queue)
    for _ in range(2):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{}] * 10_000)
    time = "utc_timestamp(6) - interval 1 hour"
    for table, row in DEAD_TIMES.items():
        connection.execute(
            f"insert into rowq.{table} {row.format(time=time)}"
            " from rowq.ready where queue_id = %s and message_id > 0",
            [queue_id],
        )
        keep = "finished_at" if table == "result" else row[1:].split(", ")[1]
        connection.execute(
            f"delete from rowq.{table} where queue_id = %s and {keep} < utc_timestamp(6)",
            [queue_id],
        )
    for statement in DEAD:
        connection.execute(statement, [queue_id])
    rescan(connection, queue)
    # Only an expiry moves this floor.
    connection.execute(
        "call rowq.internal_move_floor(%s, -6, 0, timestampdiff(microsecond, '1970-01-01',"
        " utc_timestamp(6)))",
        [queue_id],
    )

    def health() -> int:
        return fewest_pages(
            connection,
            lambda: connection.execute("call rowq.internal_health_queue(%s, @checks)", [queue_id]),
        )

    def numbers() -> int:
        connection.execute("call rowq.internal_next_numbers(@next_id, @next_claim, @next_queue)")
        connection.execute("set @id = 0, @claim = 0")
        newest = "call rowq.internal_newest_numbers_of(%s, @next_id, @next_claim, @id, @claim)"
        return fewest_pages(connection, lambda: connection.execute(newest, [queue_id]))

    # The dead rows of each of these tables take 30 pages or more.
    assert health() < 70
    assert numbers() < 30
    connection.execute(
        "update rowq.lane set floor = 0 where queue_id = %s and lane < 0", [queue_id]
    )
    assert health() > 300
