"""Plans and costs of the hot routines: index scans only, also for plans made on empty tables.

The plans are those that the server runs inside the routines, as auto_explain reports them.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection
from tests.helpers.calls import Row, call, call_one, dequeue, enqueue
from tests.stored_times import pass_seconds

STORED = {
    "queue", "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "archive",
    "floor", "limit_lock", "group_waiting", "group_slot", "deferred", "schedule", "started",
    "expiry", "blocked", "result", "history",
}  # fmt: skip
ALWAYS_SMALL = {"queue", "limit_lock"}
"""Small tables: any plan is good."""

FILL = 20
"""Batches of 10,000 ready messages in the large tables."""

FLOOR_LAG = 15
"""Buffers of up to 1,000 dead rows between a floor and the first live message."""

Plan = dict[str, Any]


class Watched:
    """A session that reports the plan of every statement inside routines."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.plans: list[Plan] = []
        connection.add_notice_handler(self._note)
        try:
            connection.execute("load 'auto_explain'")
        except psycopg.errors.UndefinedFile:
            pytest.skip("this server came without auto_explain; to run it: one with its contrib")
        for name, value in {
            "log_min_duration": "0",
            "log_nested_statements": "on",
            "log_analyze": "on",
            "log_buffers": "on",
            "log_timing": "off",
            "log_format": "json",
            "log_level": "notice",
        }.items():
            connection.execute(f"set auto_explain.{name} = '{value}'")

    def run(self, work: Callable[[Connection], object]) -> list[Plan]:
        """Run some work and return the plans of its statements."""
        self.plans.clear()
        work(self.connection)
        return list(self.plans)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        _, found, plan = (notice.message_primary or "").partition("plan:\n")
        if found:
            self.plans.append(json.loads(plan))


def nodes(plan: Plan) -> Iterator[Plan]:
    """Yield a plan's nodes, from the top."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def faults(plans: list[Plan]) -> set[str]:
    """Return the parts of a plan that find or order rows without an index."""
    found = set()
    for plan in plans:
        text = " ".join(plan["Query Text"].split())[:300]
        for node in nodes(plan["Plan"]):
            kind, table = node["Node Type"], node.get("Relation Name")
            inside = {str(below.get("Relation Name")) for below in nodes(node)} & STORED
            if table in STORED - ALWAYS_SMALL and ("Seq" in kind or "Bitmap" in kind):
                found.add(f"{kind} on {table}: {text}")
            if "Sort" in kind and inside & {"ready", "delayed", "claim", "floor"}:
                found.add(f"{kind} over {sorted(inside)}: {text}")
            bounded = ">=" in node.get("Index Cond", "")
            # A list of constants ('{...}') is not a list of keys.
            listed = node.get("Filter", "").replace(" = ANY ('{", "")
            if table in STORED and " = ANY (" in listed and not bounded:
                found.add(f"keys looked for by filter in {table}: {text}")
            whole = kind.startswith("Index") and "Index Cond" not in node
            if whole and table in STORED - ALWAYS_SMALL:
                found.add(f"{kind} on all of {table}: {text}")
    return found


def exchange(connection: Connection, claim_id: int, **arguments: Any) -> list[Row]:
    """Complete messages of a claim and lease the next ones."""
    given = {"queue_name": "hot", "claim_id": claim_id, **arguments}
    return call(connection, "complete_and_dequeue", **given)


def cycle(connection: Connection, batch_size: int = 3) -> None:
    """Run every hot routine in every way that has its own statements."""
    messages = [{"body": "x", "dedup_key": None}, {"body": "y"}, {"delay_seconds": 1000}]
    call(connection, "enqueue_batch", queue_name="hot", messages=messages)
    enqueue(connection, "hot", *"abcd", priority=1)
    enqueue(connection, "hot", "delayed", delay_seconds=1000)
    enqueue(connection, "hot", "keyed", dedup_key="key", priority=1)
    rows = dequeue(connection, "hot", batch_size)
    common = {"queue_name": "hot", "claim_id": rows[0].claim_id}
    call(connection, "extend_lease", **common)
    call(connection, "complete", **common, message_ids=[rows[0].message_id])
    call(connection, "retry_later", **common, message_ids=[rows[1].message_id], error="x")
    call(connection, "release", **common)
    rows = dequeue(connection, "hot", batch_size)
    call(connection, "complete", queue_name="hot", claim_id=rows[0].claim_id)
    enqueue(connection, "hot", *"efghijklmnop", priority=1)
    [row] = dequeue(connection, "hot", 1)
    rows = exchange(connection, row.claim_id, batch_size=batch_size)
    rows = exchange(connection, rows[0].claim_id, message_ids=[row.message_id for row in rows])
    rows = exchange(connection, rows[0].claim_id, batch_size=batch_size)
    exchange(connection, rows[0].claim_id, message_ids=[rows[0].message_id])
    rows = exchange(connection, rows[0].claim_id)
    assert exchange(connection, row.claim_id)[0].outcome == "stale"
    call(connection, "complete", queue_name="hot", claim_id=rows[0].claim_id)
    call(connection, "promote", queue_name="hot")
    call(connection, "reap", queue_name="hot")
    call(connection, "maintain", queue_name="hot")


def fill(connection: Connection) -> None:
    """Insert 200,000 ready, 10,000 delayed and 2,000 leased messages."""
    for turn in range(FILL):
        messages = [{"body": "x" * 50, "priority": turn % 10}] * 10000
        call(connection, "enqueue_batch", queue_name="hot", messages=messages)
    delayed = [{"body": "x", "delay_seconds": 5000}] * 10000
    call(connection, "enqueue_batch", queue_name="hot", messages=delayed)
    for _ in range(100):
        dequeue(connection, "hot", 20)


@pytest.mark.slow("a large backlog")
@pytest.mark.pitfall("postgres 4")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_plans_made_on_empty_tables_use_indexes(
    owner: Connection, open_owner: Open, archive_days: int
) -> None:
    call(owner, "create_queue", queue_name="hot", archive_days=archive_days)
    early = Watched(open_owner())
    for _ in range(7):  # The first five calls may each make a new plan.
        early.run(cycle)
    fill(owner)
    assert faults(early.run(cycle)) == set(), "before analyze"
    owner.execute("analyze")
    plans = early.run(cycle)
    assert len(plans) > 50
    assert faults(plans) == set(), "after analyze"
    late = Watched(open_owner())
    assert faults(late.run(cycle)) == set(), "in a new session"
    pass_seconds(owner, "hot", 6000)  # Everything is due and expired.
    assert faults(early.run(cycle)) == set(), "with much to promote and to reap"


def test_plain_message_gets_its_transaction_id_before_its_number(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name="hot")
    enqueue(owner, "hot", "opens the lane")
    watched = Watched(open_owner())
    watched.connection.execute("set auto_explain.log_verbose = on")
    found = [
        name
        for plan in watched.run(lambda connection: enqueue(connection, "hot", "a"))
        for name in ("pg_current_xact_id()", "nextval(", "clock_timestamp()")
        if name in json.dumps(plan["Plan"])
    ]
    assert found == ["pg_current_xact_id()", "nextval(", "clock_timestamp()"]


def dequeue_cost(connection: Connection, batch_size: int) -> int:
    """Return the fewest shared buffers of six dequeues of full batches."""
    costs: list[int] = []
    for _ in range(6):
        call(connection, "enqueue_batch", queue_name="hot", messages=[{"body": "x"}] * batch_size)
        [plans] = connection.execute(
            """
            explain (analyze, buffers, timing off, format json)
            select * from rowq.dequeue_fast(p_queue_name => 'hot', p_batch_size => %s)
            """,
            [batch_size],
        ).fetchone()
        top = plans[0]["Plan"]
        assert top["Actual Rows"] == batch_size
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    return min(costs)


def drain(connection: Connection) -> None:
    """Dequeue and complete all messages in batches of 50, with maintain in between."""
    turn = 0
    while rows := dequeue(connection, "hot", 50):
        call(connection, "complete", queue_name="hot", claim_id=rows[0].claim_id)
        turn += 1
        if turn % 20 == 0:
            pass_seconds(connection, "hot", 1)
            call_one(connection, "maintain", queue_name="hot")


@pytest.mark.slow("a large backlog")
@pytest.mark.pitfall("postgres 5")
@pytest.mark.promise("P11", "P13")
def test_delayed_messages_do_not_slow_a_dequeue(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name="hot")
    session = open_owner()
    for _ in range(3):  # The first calls plan and read the catalog.
        dequeue_cost(session, 50)
    before = {size: dequeue_cost(session, size) for size in (1, 50)}
    delayed = [{"body": "x", "delay_seconds": 86400, "priority": 0}] * 10000
    for _ in range(10):
        call(owner, "enqueue_batch", queue_name="hot", messages=delayed)
    for size, start in before.items():
        end = dequeue_cost(session, size)
        assert end <= 1.2 * start + 5, f"a batch of {size}: {start} buffers before, {end} after"


@pytest.mark.slow("a large backlog")
@pytest.mark.pitfall("postgres 1")
@pytest.mark.promise("P13")
def test_dequeue_costs_the_same_under_a_held_snapshot(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name="hot")
    session, holder = open_owner(), open_owner()
    for _ in range(3):
        dequeue_cost(session, 50)
    drain(owner)
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    before = {size: dequeue_cost(session, size) for size in (1, 50)}
    for _ in range(2):
        messages = [{"body": "x" * 50}] * 10000
        call(owner, "enqueue_batch", queue_name="hot", messages=messages)
        drain(owner)
    for size, start in before.items():
        end = dequeue_cost(session, size)
        assert end <= 1.5 * start + FLOOR_LAG, (
            f"a batch of {size}: {start} buffers before, {end} after"
        )
    holder.execute("rollback")


@pytest.mark.promise("P13")
def test_maintain_runs_few_statements_for_many_idle_queues(
    owner: Connection, open_owner: Open
) -> None:
    queues = [f"idle {number}" for number in range(50)]
    for queue in queues:
        call(owner, "create_queue", queue_name=queue)
        call(owner, "enqueue_batch", queue_name=queue, messages=[{}, {}, {"delay_seconds": 3600}])
        call(owner, "complete", queue_name=queue, claim_id=dequeue(owner, queue)[0].claim_id)
    session = open_owner()
    for _ in range(3):  # New queues need floors.
        call(session, "maintain")
    watched = Watched(session)
    # A queue whose check is slowed down by other load is maintained.
    counts = [len(watched.run(lambda session: call(session, "maintain"))) for _ in range(10)]
    assert 0 < min(counts) <= 20


def release_cost(connection: Connection) -> int:
    """Return the fewest shared buffers of three releases of one message."""
    costs: list[int] = []
    for _ in range(3):
        [row] = dequeue(connection, "hot", 1)
        [plans] = connection.execute(
            "explain (analyze, buffers, timing off, format json) select rowq.release('hot', %s)",
            [row.claim_id],
        ).fetchone()
        top = plans[0]["Plan"]
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    return min(costs)


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13")
def test_release_costs_the_same_under_a_held_snapshot(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name="hot")
    enqueue(owner, "hot", "a", priority=6)
    session, holder = open_owner(), open_owner()
    for _ in range(3):  # The first calls plan and read the catalog.
        release_cost(session)
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    before = release_cost(session)
    owner.execute("select setval('rowq.message_seq', 1000000)")
    owner.execute("""
        do $$
        begin
            for v_number in 1..5000 loop
                perform rowq.internal_move_floor(
                    (select q.queue_id from rowq.queue q), 10::smallint, true, p_cap => v_number
                );
            end loop;
        end;
        $$
        """)
    assert owner.execute("select pg_relation_size('rowq.floor') / 8192").fetchone()[0] > 50
    after = release_cost(session)
    assert after <= before + FLOOR_LAG, f"{before} buffers before, {after} after"
    holder.execute("rollback")


def test_batch_from_a_table_is_unpacked_once(
    owner: Connection,
) -> None:
    call(owner, "create_queue", queue_name="hot")
    owner.execute("""
        create table public.batch as
        select jsonb_agg(jsonb_build_object('body', repeat(md5(i::text), 6))) as messages
        from generate_series(1, 1000) i
        """)
    costs: list[int] = []
    for _ in range(3):  # The first call plans and reads the catalog.
        [plans] = owner.execute("""
            explain (analyze, buffers, timing off, format json)
            select count(*) from rowq.enqueue_batch('hot', (select messages from public.batch))
            """).fetchone()
        top = plans[0]["Plan"]
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    (pages,) = owner.execute(
        "select pg_table_size('public.batch') / current_setting('block_size')::integer"
    ).fetchone()
    assert pages > 5, "the batch is stored out of line"
    # A message takes about six: its row, its ready row, and their index pages.
    assert min(costs) < 12 * 1000, costs
