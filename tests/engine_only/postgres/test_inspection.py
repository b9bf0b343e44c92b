"""Inspection routines read a page by its index, past dead rows and earlier pages."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_cancel import scans
from tests.engine_only.postgres.test_plans import Plan, Watched, faults, nodes
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, rolled_back
from tests.helpers.queues import CheckedQueue
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.slow("100,000 messages")

LARGE = 100_000
DEAD = (
    """
    insert into rowq.claim (queue_id, lease_until, message_ids, lanes, attempts)
    select q.queue_id, now() + interval '1 hour', array[n], '{11}', '{1}'
    from rowq.queue q cross join generate_series(1, 20000) n
    """,
    "delete from rowq.claim",
    """
    insert into rowq.delayed (queue_id, lane, message_id, due_at)
    select q.queue_id, 11, -n, now() - interval '1 hour'
    from rowq.queue q cross join generate_series(1, 20000) n
    """,
    "delete from rowq.delayed",
)
"""Statements that make dead rows under an old snapshot."""
PAGE = 50
NEWEST = 2**63 - 1
Inspection = Callable[[Connection], list[Any]]
ONE_PAGE = 60
"""Buffers of a call that finds little; scanning the dead rows costs hundreds more."""


def fill(queue: CheckedQueue) -> None:
    """Insert 100,000 delayed messages with keys, dead ones and claims."""
    for batch in range(LARGE // 10_000):
        keyed = [
            {"dedup_key": f"{batch} {number}", "delay_seconds": 5000, "message_type": "mail"}
            for number in range(10_000)
        ]
        queue.call("enqueue_batch", messages=keyed)
        typed = [{"message_type": "mail" if number % 2 else "other"} for number in range(10_000)]
        queue.call("enqueue_batch", messages=typed)
    for statement in (
        """
        with gone as (delete from rowq.ready returning queue_id, lane, message_id)
        insert into rowq.dead (queue_id, lane, attempt, message_id, died_at, last_error)
        select queue_id, lane, 1, message_id, now(), 'broken' from gone
        """,
        """
        insert into rowq.claim (queue_id, lease_until, message_ids, lanes, attempts)
        select q.queue_id, now() + interval '1 hour', array[n], '{11}', '{1}'
        from rowq.queue q cross join generate_series(1, 100000) n
        where q.queue_name = 'q'
        """,
    ):
        queue.connection.execute(statement)


def inspections(queue: CheckedQueue) -> dict[str, Inspection]:
    """Return calls that read a page at the start, in the middle and at the end."""
    dead = [row.message_id for row in queue.call("list_dead", max_messages=10_000)]
    delayed = queue.call("list_delayed", max_messages=10_000)
    claims = [row.claim_id for row in queue.call("list_claims", max_claims=10_000)]
    page = {"max_messages": PAGE}
    after: dict[str, Any] = {}
    if delayed:
        after = {"after_due_at": delayed[-1].due_at, "after_message_id": delayed[-1].message_id}

    def read(routine: str, **arguments: Any) -> Inspection:
        return lambda session: call(session, routine, **arguments)

    own = {"queue_name": "q"}
    return {
        "dead": read("list_dead", **own, **page),
        "dead, later": read("list_dead", **own, **page, after_message_id=dead[-1] if dead else 0),
        "dead, newest": read("list_dead", **own, **page, before_message_id=NEWEST),
        "dead, of a type": read("list_dead", **own, max_messages=PAGE // 2, message_type="mail"),
        "dead, newest of a type": read(
            "list_dead", **own, max_messages=PAGE // 2, message_type="mail",
            before_message_id=dead[-1] if dead else NEWEST,
        ),
        "delayed": read("list_delayed", **own, **page),
        "delayed, later": read("list_delayed", **own, **page, **after),
        "claims": read("list_claims", **own, max_claims=PAGE),
        "claims of all": read("list_claims", max_claims=PAGE),
        "claims, later": read(
            "list_claims", **own, max_claims=PAGE, after_claim_id=claims[-1] if claims else 0
        ),
        "by key": read("find_message", **own, dedup_key="3 17"),
        "by no key": read("find_message", **own, dedup_key="no"),
    }  # fmt: skip


def inspect(watched: Watched, inspection: Inspection) -> tuple[list[Any], list[Plan]]:
    """Return the rows of a call, and its plans."""
    rows: list[Any] = []
    plans = watched.run(lambda session: rows.extend(inspection(session)))
    return rows, plans


def faults_of(plans: list[Plan]) -> set[str]:
    """Return faults, except sorting the pages of claims, one per queue."""
    return {fault for fault in faults(plans) if not fault.startswith("Sort over ['claim'")}


@pytest.mark.timeout(300)
@pytest.mark.promise("P13")
def test_inspection_pages_are_read_by_index(open_owner: Open, own_queue: CheckedQueue) -> None:
    early = Watched(open_owner())
    for inspection in inspections(own_queue).values():
        for _ in range(7):  # The first five calls may each make a new plan.
            early.run(inspection)
    fill(own_queue)
    analyzed = "before analyze"
    for session in (early, Watched(open_owner())):
        for name, inspection in inspections(own_queue).items():
            rows, plans = inspect(session, inspection)
            assert faults_of(plans) == set(), (analyzed, name)
            assert len(rows) == {"by key": 1, "by no key": 0}.get(
                name, PAGE // 2 if "type" in name else PAGE
            ), name
            for table in ("dead", "delayed", "claim", "message", "dedup"):
                read = sum(
                    node["Actual Rows"] * node["Actual Loops"]
                    + node.get("Rows Removed by Filter", 0)
                    for node in scans(plans, table)
                )
                assert read <= PAGE, (analyzed, name, table)
        own_queue.connection.execute("analyze")
        analyzed = "after analyze"


@pytest.mark.timeout(300)
@pytest.mark.promise("P13")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_discard_finds_and_deletes_by_key(
    open_owner: Open, own_queue: CheckedQueue, *, is_planned_while_empty: bool
) -> None:
    watched = Watched(open_owner())

    def discard(**arguments: Any) -> Callable[[Connection], object]:
        def work(session: Connection) -> None:
            found = call_one(session, "discard_dead", queue_name="q", **arguments).removed
            removed.append(found)

        return work

    removed: list[int] = []
    if is_planned_while_empty:
        for _ in range(7):
            watched.run(discard())
            watched.run(discard(message_ids=[1, 2]))
        removed.clear()
    fill(own_queue)
    oldest = [row.message_id for row in own_queue.call("list_dead", max_messages=PAGE)]
    newest = own_queue.call("list_dead", max_messages=1, before_message_id=NEWEST)[0].message_id
    for arguments in (
        {"message_ids": [oldest[0], newest]},
        {"max_messages": PAGE},
        {"max_messages": PAGE, "message_type": "mail"},
    ):
        plans = watched.run(discard(**arguments))
        assert faults(plans) == set(), arguments
        for node in scans(plans, "dead"):
            assert node["Actual Rows"] + node.get("Rows Removed by Filter", 0) <= 2 * PAGE, (
                arguments
            )
    assert removed == [2, PAGE, PAGE]


def cost(watched: Watched, work: Callable[[Connection], object], table: str) -> int:
    """Return the fewest buffers of a call in a table and its indexes."""
    found: list[int] = []
    for _ in range(3):
        nodes = scans(watched.run(work), table)
        found.append(sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in nodes))
    return min(found)


@pytest.mark.promise("P13")
def test_inspection_skips_dead_rows_under_an_old_snapshot(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    connection, reader = open_owner(), open_owner()
    watched = Watched(open_owner())
    with rolled_back(reader):
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from rowq.queue")
        for statement in DEAD:
            connection.execute(statement)
        # maintain moves a safe floor after 400 numbers or a minute.
        for _ in range(4):
            connection.execute("select setval('rowq.claim_seq', nextval('rowq.claim_seq') + 1000)")
            pass_seconds(connection, "q", 100)
            enqueue(connection, "q", *["x"] * 20, delay_seconds=0.01)
            time.sleep(0.05)
            own_queue.tick()
            call(connection, "maintain", queue_name="q")
            while rows := dequeue(connection, "q", 5):
                call(connection, "complete", queue_name="q", claim_id=rows[0].claim_id)
        enqueue(connection, "q", "leased")
        dequeue(connection, "q")
        enqueue(connection, "q", "delayed", delay_seconds=1000)

        def claims(session: Connection) -> None:
            assert len(call(session, "list_claims", queue_name="q")) == 1

        def delayed(session: Connection) -> None:
            assert len(call(session, "list_delayed", queue_name="q")) == 1

        assert cost(watched, claims, "claim") <= ONE_PAGE
        assert cost(watched, delayed, "delayed") <= ONE_PAGE
        # Without floors they scan the dead rows.
        connection.execute("delete from rowq.floor")
        assert cost(watched, claims, "claim") > ONE_PAGE
        assert cost(watched, delayed, "delayed") > ONE_PAGE


@pytest.mark.promise("P13")
def test_page_of_queue_stats_reads_no_other_queue(owner: Connection, open_owner: Open) -> None:
    for number in range(50):
        call(owner, "create_queue", queue_name=f"q{number}")
        enqueue(owner, f"q{number}", "x", "x")
    watched = Watched(open_owner())
    for arguments, count in (
        ({"after_queue_name": "q2", "max_queues": 5}, 5),
        (
            {"queue_name": "q3"},
            1,
        ),
    ):
        plans = watched.run(lambda own: call(own, "queue_stats", **arguments))  # noqa: B023
        [plan] = [plan for plan in plans if "recursive lane" in plan["Query Text"]]
        assert faults([plan]) == set()
        found = list(nodes(plan["Plan"]))
        assert not [node for node in found if "Sort" in node["Node Type"]]
        read = [node for node in found if node.get("Relation Name") == "queue"]
        assert [(node["Index Name"], node["Actual Rows"]) for node in read] == [
            ("queue_name_ix", count)
        ]
