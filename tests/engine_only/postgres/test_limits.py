"""Limits on PostgreSQL: plans, statement counts, and the second count under the lock."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Watched, faults
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.calls import call, dequeue, rolled_back
from tests.stored_times import pass_seconds

QUEUE = "limited"

CLAIM_LAG = 120
"""Buffers of up to 800 dead claims between the safe floor and the first live one."""


@pytest.fixture
def limited(owner: Connection) -> Connection:
    """Return a session in a database whose only queue has both limits, far away."""
    call(owner, "create_queue", queue_name=QUEUE, max_leased=500, rate_limit=900)
    return owner


def fill(connection: Connection, count: int) -> None:
    call(connection, "enqueue_batch", queue_name=QUEUE, messages=[{"body": "x"}] * count)


def cycle(connection: Connection) -> None:
    """Dequeue and complete one message and several, and run maintain."""
    for size in (1, 3):
        fill(connection, size)
        rows = dequeue(connection, QUEUE, size)
        call(connection, "complete", queue_name=QUEUE, claim_id=rows[0].claim_id)
    call(connection, "maintain", queue_name=QUEUE)


@pytest.mark.slow("a large backlog")
@pytest.mark.promise("P13")
def test_plans_made_on_empty_tables_count_by_indexes(limited: Connection, open_owner: Open) -> None:
    early = Watched(open_owner())
    for _ in range(7):  # The first five calls may each make a new plan.
        early.run(cycle)
    limited.execute(
        "insert into rowq.started"
        " select queue_id, 1, clock_timestamp() - i * interval '10 seconds', -i"
        " from rowq.queue, generate_series(1, 20000) i"
    )
    limited.execute(
        "insert into rowq.claim (queue_id, lease_until, message_ids, lanes, attempts)"
        " select queue_id, clock_timestamp() + interval '1 hour', array[-i], array[11], array[1]"
        " from rowq.queue, generate_series(1, 400) i"
    )
    assert faults(early.run(cycle)) == set(), "before analyze"
    limited.execute("analyze")
    plans = early.run(cycle)
    assert any("rowq.started" in plan["Query Text"] for plan in plans)
    assert faults(plans) == set(), "after analyze"
    assert faults(Watched(open_owner()).run(cycle)) == set(), "in a new session"


def statements(connection: Connection, batch_size: int) -> int:
    """Return the fewest statements of a dequeue: sometimes a floor moves."""
    watched = Watched(connection)
    return min(
        len(watched.run(lambda session: dequeue(session, QUEUE, batch_size))) for _ in range(12)
    )


@pytest.mark.promise("P28", "P29")
def test_limits_add_statements_to_limited_queues_only(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name=QUEUE)
    counts: dict[str, int] = {}
    ways: dict[str, dict[str, float]] = {
        "none": {},
        "leased": {"max_leased": 100},
        "both": {"rate_limit": 100, "rate_seconds": 0.1},
        "full": {"max_leased": 1},
    }
    for name, settings in ways.items():
        call(owner, "alter_queue", queue_name=QUEUE, **settings)
        fill(owner, 12)
        counts[name] = statements(open_owner(), 1)
    extra = {name: count - counts["none"] for name, count in counts.items()}
    # Each count is two statements, the limit lock and reading the settings one each, and recording
    # the start two. A full queue is counted once and leases no message.
    assert {name: extra[name] for name in ("leased", "both")} == {"leased": 6, "both": 8}
    assert extra["full"] < 0


def leased_beside_a_holder(server: Server, open_owner: Open) -> int:
    """Return how many of 4 messages two dequeues of 3 lease; the second waits for the first."""
    holder, waiter = open_owner(), open_owner()
    let_wait(holder, LIMIT_LOCK[0])
    fill(holder, 9)
    holder.execute("begin")
    taken = len(dequeue(holder, QUEUE, 3))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(dequeue, waiter, QUEUE, 3)
        wait_until(lambda: server.waits_for_limit(server.session_id(waiter)), "it waits")
        holder.execute("commit")
        return taken + len(running.result(20))


def change(connection: Connection, routine: str, old: str, new: str) -> None:
    """Replace a fragment of a routine."""
    [(source,)] = connection.execute(
        "select pg_get_functiondef(%s::regprocedure)", [f"rowq.{routine}"]
    ).fetchall()
    assert old in source
    connection.execute(source.replace(old, new).encode())


def drop_second_count(owner: Connection) -> None:
    """Make a dequeue act on its count before the limit lock."""
    admit = "internal_admit(integer, integer, integer, integer, double precision)"
    change(owner, admit, "o_capacity := 0;", "")
    change(owner, admit, "if not v_is_paused then", "if false then")


@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_two_dequeues_at_the_limit_lock_share_capacity(
    server: Server, owner: Connection, open_owner: Open, setting: str
) -> None:
    call(owner, "create_queue", queue_name=QUEUE, rate_seconds=1000, **{setting: 4})
    assert leased_beside_a_holder(server, open_owner) == 4


@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_limit_is_exceeded_without_the_second_count(
    server: Server, owner: Connection, open_owner: Open, setting: str
) -> None:
    call(owner, "create_queue", queue_name=QUEUE, rate_seconds=1000, **{setting: 4})
    drop_second_count(owner)
    assert leased_beside_a_holder(server, open_owner) == 6


def cost(connection: Connection) -> int:
    """Return the fewest shared buffers of six dequeues of one message."""
    costs: list[int] = []
    for _ in range(6):
        fill(connection, 1)
        [plans] = connection.execute(
            "explain (analyze, buffers, timing off, format json)"
            " select * from rowq.dequeue_fast(p_queue_name => 'limited')"
        ).fetchone()
        top = plans[0]["Plan"]
        assert top["Actual Rows"] == 1
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
        for (claim,) in connection.execute("select claim_id from rowq.claim").fetchall():
            call(connection, "complete", queue_name=QUEUE, claim_id=claim)
    return min(costs)


def pass_messages(connection: Connection, count: int) -> None:
    """Process messages one by one, with maintain in between."""
    for turn in range(count // 100):
        fill(connection, 100)
        for _ in range(10):
            rows = dequeue(connection, QUEUE, 10)
            call(connection, "complete", queue_name=QUEUE, claim_id=rows[0].claim_id)
        pass_seconds(connection, QUEUE, 2)
        if turn % 2:
            call(connection, "maintain", queue_name=QUEUE)


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13")
def test_limited_dequeue_costs_the_same_under_a_held_snapshot(
    limited: Connection, open_owner: Open
) -> None:
    session, holder = open_owner(), open_owner()
    pass_messages(limited, 1000)
    for _ in range(3):  # Warm up: the first calls plan.
        cost(session)
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    before = cost(session)
    pass_messages(limited, 8000)
    after = cost(session)
    assert after <= before + CLAIM_LAG, f"{before} buffers before, {after} after"
    holder.execute("rollback")


@pytest.mark.promise("P19")
def test_limited_queue_is_idle_after_its_starts_are_purged(
    limited: Connection, open_owner: Open
) -> None:
    session = open_owner()
    for _ in range(3):
        cycle(session)
    for _ in range(3):
        pass_seconds(limited, QUEUE, 61)
        call(session, "maintain", queue_name=QUEUE)
    assert limited.execute("select count(*) from rowq.started").fetchone() == (0,)
    call(limited, "create_queue", queue_name="unlimited")
    watched = Watched(session)

    def statements_of_maintain(queue: str) -> int:
        runs = (
            watched.run(lambda session: call(session, "maintain", queue_name=queue))
            for _ in range(6)
        )
        return min(map(len, runs))

    assert statements_of_maintain(QUEUE) == statements_of_maintain("unlimited")


LIMIT_LOCK = (
    "internal_lock_limit(integer)",
    "select from rowq.limit_lock for update",
    "select rowq.internal_lock_limit(queue_id) from rowq.queue",
)
GROUP = (
    "internal_try_take_group_slot(integer, text)",
    "select rowq.internal_take_group_slot(queue_id, 'group') from rowq.queue",
    "select rowq.internal_try_take_group_slot(queue_id, 'group') from rowq.queue",
)
LATER = "set statement_timeout = '150ms'"
"""Later than the extended timeout of either routine."""


def let_wait(connection: Connection, routine: str) -> None:
    """Make a routine wait for a minute."""
    if routine == LIMIT_LOCK[0]:
        change(connection, routine, "interval '100 milliseconds'", "interval '1 minute'")
    else:
        connection.execute(f"alter function rowq.{routine} set lock_timeout = '60s'")


@pytest.mark.pitfall("postgres 27")
@pytest.mark.promise("P28")
@pytest.mark.parametrize("how", ["cancel", "statement_timeout"])
@pytest.mark.parametrize(("routine", "holding", "waiting"), [LIMIT_LOCK, GROUP])
def test_cancel_and_statement_timeout_end_a_wait(
    limited: Connection,
    open_owner: Open,
    server: Server,
    routine: str,
    holding: str,
    waiting: str,
    how: str,
) -> None:
    let_wait(limited, routine)
    other = open_owner()
    own = server.session_id(other)
    if how == "statement_timeout":
        other.execute(LATER)
    with limited.transaction(), ThreadPoolExecutor(1) as pool:
        limited.execute(holding)
        call = pool.submit(lambda: other.execute(waiting).fetchone())
        if how == "cancel":
            wait_until(
                lambda: server.waits_for_limit(own) or own in server.waiting_sessions(), "it waits"
            )
            time.sleep(0.15)
            limited.execute("select pg_cancel_backend(%s)", [own])
        with pytest.raises(psycopg.errors.QueryCanceled):
            call.result(20)


@pytest.mark.promise("P22")
def test_timeout_reported_as_cancel_is_not_caught(
    limited: Connection, open_owner: Open, server: Server
) -> None:
    """At the very end of the first of two row waits, PostgreSQL reports a timeout as a cancel.

    That time cannot be chosen, so extend the timeout and send a real cancel instead.
    """
    routine, holding, waiting = GROUP
    change(limited, routine, "interval '30 milliseconds'", "interval '1 minute'")
    let_wait(limited, routine)
    other = open_owner()
    own = server.session_id(other)
    with limited.transaction(), ThreadPoolExecutor(1) as pool:
        limited.execute(holding)
        call = pool.submit(lambda: other.execute(waiting).fetchone())
        wait_until_blocked(server, own, by=server.session_id(limited))
        time.sleep(0.05)
        limited.execute("select pg_cancel_backend(%s)", [own])
        assert call.result(20) == (None,)


@pytest.mark.promise("P19")
@pytest.mark.parametrize("in_savepoint", [False, True])
def test_health_names_the_session_holding_the_limit_lock(
    limited: Connection, open_owner: Open, *, in_savepoint: bool
) -> None:
    idle = open_owner()
    pid = idle.execute("select pg_backend_pid()").fetchone()[0]

    def held() -> tuple[float, str]:
        [row] = [row for row in call(limited, "health") if row.check_name == "held_limits"]
        assert row.queue_name == QUEUE
        return row.value, row.detail

    fill(limited, 2)
    call(limited, "create_queue", queue_name="without limits")
    assert held()[0] == 0
    with rolled_back(idle):
        if in_savepoint:
            idle.execute("savepoint s")
        assert len(dequeue(idle, QUEUE)) == 1
        assert dequeue(limited, QUEUE) == []
        seconds, detail = held()
        assert seconds > 0
        assert f"session {pid} of " in detail
        assert "idle in transaction" in detail
    assert held()[0] == 0
