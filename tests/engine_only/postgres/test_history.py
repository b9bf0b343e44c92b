"""History on PostgreSQL: statements, plans and the cost of its purge."""

from functools import partial
from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_limits import change
from tests.engine_only.postgres.test_plans import Plan, Watched, faults, nodes
from tests.engine_only.postgres.test_results import check_purge_cost, fewest, fill
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import call, call_one, dequeue, enqueue
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.promise("P37")

QUEUE = "kept"
DAY = 86400
ENDS = ("complete", "retry_later", "fail_now", "release", "reap")

each_end = pytest.mark.parametrize("routine", ENDS)


@pytest.fixture
def kept(owner: Connection) -> Connection:
    """Return a session in a database whose only queue keeps history."""
    call(owner, "create_queue", queue_name=QUEUE, history_days=3, backoff_base_seconds=0)
    return owner


def end(connection: Connection, routine: str, size: int, part: int | None = None) -> list[int]:
    """Lease messages and end the attempts of all, or of the first `part`; return their ids."""
    rows = dequeue(connection, QUEUE, size)
    claim, ids = rows[0].claim_id, [row.message_id for row in rows]
    if routine == "reap":
        dialect_of(connection).expire_claim(connection, claim)
        call(connection, "reap", queue_name=QUEUE)
    else:
        named = {} if part is None else {"message_ids": ids[:part]}
        call(connection, routine, queue_name=QUEUE, claim_id=claim, **named)
    return ids


def history(connection: Connection, message: int) -> list[Any]:
    return call(connection, "get_history", queue_name=QUEUE, message_id=message)


def cycle(connection: Connection) -> None:
    """End attempts in every way, read them before and after, and maintain."""
    for routine in ENDS:
        for size, part in ((1, None), (3, None), (3, 1), (3, 2)):
            enqueue(connection, QUEUE, *"x" * size, priority=0)
            (first, *_) = end(connection, routine, size, part)
            history(connection, first)
    enqueue(connection, QUEUE, "x", "y", priority=0)
    rows = dequeue(connection, QUEUE, 2)
    history(connection, rows[0].message_id)
    ids = [row.message_id for row in rows]
    call(connection, "cancel", queue_name=QUEUE, message_ids=ids[:1], include_leased=True)
    call(connection, "release", queue_name=QUEUE, claim_id=rows[0].claim_id)
    for routine in ("maintain", "purge_archive"):
        call(connection, routine, queue_name=QUEUE)


def grow(connection: Connection) -> None:
    """Insert much history, of many messages and of one, and many messages."""
    for shift, message in ((100, "-i"), (400_000, "-i - 50000"), (10, "-1")):
        connection.execute(
            "insert into rowq.history"
            " (queue_id, attempt, message_id, claim_id, leased_at, ended_at, outcome)"
            f" select queue_id, 1, {message}, -i, clock_timestamp() - interval '5 days',"
            f" clock_timestamp() - i * interval '0.1 seconds' - interval '{shift} seconds',"
            " 'completed' from rowq.queue, generate_series(1, 10000) i"
        )
    messages = [{"body": "x", "delay_seconds": 1000}] * 6000
    call(connection, "enqueue_batch", queue_name=QUEUE, messages=messages)


def faulty(plans: list[Plan]) -> set[str]:
    """Return the faults of plans, without the statement by which the test expires leases."""
    return faults([plan for plan in plans if "interval '2' day" not in plan["Query Text"]])


@pytest.mark.promise("P13")
def test_plans_made_on_empty_tables_use_indexes_later(kept: Connection, open_owner: Open) -> None:
    early = Watched(open_owner())
    for _ in range(7):  # Up to five calls use custom plans.
        early.run(cycle)
    grow(kept)
    assert faulty(early.run(cycle)) == set(), "before analyze"
    kept.execute("analyze")
    plans = early.run(cycle)
    assert sum("rowq.history" in plan["Query Text"] for plan in plans) > 20
    assert faulty(plans) == set(), "after analyze"
    assert faulty(Watched(open_owner()).run(cycle)) == set(), "in a new session"


@pytest.mark.promise("P13")
@pytest.mark.parametrize("is_analyzed", [False, True])
def test_get_history_finds_attempts_by_message_id(
    kept: Connection, open_owner: Open, is_analyzed: bool
) -> None:
    fill(kept, 2)
    ended = end(kept, "complete", 1)
    leased = [row.message_id for row in dequeue(kept, QUEUE)]
    grow(kept)
    if is_analyzed:
        kept.execute("analyze")
    watched = Watched(open_owner())
    for message in (*ended, *leased):
        for _ in range(2):  # The first call also reads the catalog.
            plans = watched.run(partial(history, message=message))
        (plan,) = [plan for plan in plans if "from rowq.history" in plan["Query Text"]]
        (scan,) = [node for node in nodes(plan["Plan"]) if "Relation Name" in node]
        assert scan["Index Name"] == "history_message_ix"
        assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] <= 6


def statements_of(plans: list[Plan]) -> list[str]:
    return [" ".join(plan["Query Text"].split()) for plan in plans]


@each_end
@pytest.mark.parametrize(("size", "part"), [(1, None), (3, None), (3, 1), (3, 2)])
def test_only_a_queue_with_history_pays_for_it(
    owner: Connection, open_owner: Open, routine: str, size: int, part: int | None
) -> None:
    """With history a call adds one insert; complete also locks the claim by another helper."""
    call(owner, "create_queue", queue_name=QUEUE, backoff_base_seconds=0)

    def work(session: Connection) -> None:
        fill(session, size)
        end(session, routine, size, part)
        call(session, "purge_queue", queue_name=QUEUE, include_dead=True)

    def inserts(plans: list[Plan]) -> int:
        return sum(text.startswith("insert into rowq.history") for text in statements_of(plans))

    watched = Watched(open_owner())
    plans = watched.run(work)
    assert not [text for text in statements_of(plans) if "rowq.history" in text]
    without = fewest(open_owner, work)
    call(owner, "alter_queue", queue_name=QUEUE, history_days=1)
    assert inserts(watched.run(work)) == 1
    most = 8 if routine == "complete" else 2
    assert without < fewest(open_owner, work) <= without + most


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13")
def test_maintain_skips_purged_rows_beside_an_old_snapshot(
    kept: Connection, open_owner: Open
) -> None:
    def end_and_age() -> None:
        fill(kept, 200)
        end(kept, "complete", 200)
        pass_seconds(kept, QUEUE, 4 * DAY)

    check_purge_cost(kept, open_owner, "history", end_and_age)


@pytest.mark.promise("P13")
def test_queue_with_young_history_is_idle(kept: Connection) -> None:
    fill(kept, 1)
    end(kept, "complete", 1)
    pass_seconds(kept, QUEUE, 4 * DAY)
    for _ in range(3):
        call(kept, "maintain", queue_name=QUEUE)
    fill(kept, 1)
    end(kept, "complete", 1)

    def is_busy() -> bool:
        return bool(
            kept.execute(
                "select q.queue_id = any (b.o_busy || b.o_resting) from rowq.queue q"
                " cross join lateral rowq.internal_busy_queues(array[q.queue_id]) b"
            ).fetchone()[0]
        )

    def is_idle() -> bool:
        call(kept, "maintain", queue_name=QUEUE)
        return not is_busy()

    # After a slow check, as on a busy machine, a queue is not idle.
    wait_until(is_idle, "the queue is idle", 30)
    kept.execute("update rowq.history set ended_at = ended_at - interval '4 days'")
    kept.execute("update rowq.floor set safe_seq = 0 where lane = -8")
    assert is_busy()


@pytest.mark.promise("P19")
def test_maintain_continues_when_history_is_locked(kept: Connection, open_owner: Open) -> None:
    fill(kept, 3)
    end(kept, "complete", 3)
    pass_seconds(kept, QUEUE, 4 * DAY)
    enqueue(kept, QUEUE, "delayed", delay_seconds=10)
    kept.execute("update rowq.delayed set due_at = due_at - interval '1 minute'")
    holder = open_owner()
    holder.execute("begin")
    # A stronger lock would block busy_queues, and so all maintenance.
    holder.execute("lock table rowq.history in share row exclusive mode")
    row = call_one(kept, "maintain", queue_name=QUEUE)
    assert (row.promoted, row.purged) == (1, 0)
    holder.execute("rollback")
    assert call_one(kept, "maintain", queue_name=QUEUE).purged == 3


@pytest.mark.promise("P19")
def test_maintain_skips_only_the_locked_table(kept: Connection, open_owner: Open) -> None:
    """After one wait, the second queue skips the locked table."""
    keeps = {"archive_days": 1, "history_days": 1, "result_seconds": 1}
    call(kept, "alter_queue", queue_name=QUEUE, **keeps)
    call(kept, "create_queue", queue_name="other", **keeps)
    holder = open_owner()
    tables = {"archive": "finished", "result": "result", "history": "history"}
    for held in tables:
        for queue in (QUEUE, "other"):
            enqueue(kept, queue, "x")
            rows = dequeue(kept, queue)
            call(kept, "complete", queue_name=queue, claim_id=rows[0].claim_id)
            pass_seconds(kept, queue, 2 * DAY)
        with holder.transaction():
            holder.execute(f"lock table rowq.{held} in share row exclusive mode")
            call(kept, "maintain")
            left = {
                name: kept.execute(f"select count(*) from rowq.{table}").fetchone()
                for name, table in tables.items()
            }
            assert left == {name: (2 * (name == held),) for name in tables}
        call(kept, "maintain")


@pytest.mark.promise("P19", "P32")
@pytest.mark.parametrize(("budget", "purged"), [("-1 second", 20), ("1 hour", 60)])
def test_time_for_more_batches_is_shared_by_all_queues(
    kept: Connection, budget: str, purged: int
) -> None:
    for number in range(19):
        call(kept, "create_queue", queue_name=f"kept{number}", history_days=3)
    kept.execute("update rowq.queue set result_seconds = 60")
    kept.execute(
        "insert into rowq.result (queue_id, message_id, finished_at, state)"
        " select queue_id, -i, clock_timestamp() - interval '1 hour', 'completed'"
        " from rowq.queue, generate_series(1, 30) i"
    )
    kept.execute(
        "insert into rowq.history"
        " (queue_id, attempt, message_id, claim_id, leased_at, ended_at, outcome)"
        " select queue_id, 1, -i, -i, clock_timestamp() - interval '5 days',"
        " clock_timestamp() - interval '5 days', 'completed'"
        " from rowq.queue, generate_series(1, 30) i"
    )
    change(kept, "maintain(text, integer)", "interval '100 milliseconds'", f"interval '{budget}'")
    rows = call(kept, "maintain", batch_size=10)
    assert [row.purged for row in rows] == [purged] * 20


def test_drop_queue_deletes_history_by_key_without_statistics(
    kept: Connection,
) -> None:
    kept.execute("select rowq.create_queue('others')")
    add_history(kept, "others", 20_000)
    kept.execute("analyze rowq.history")
    add_history(kept, QUEUE, 2_000)
    query = f"explain (analyze, buffers, format json) select rowq.drop_queue('{QUEUE}')"
    row: Any = kept.execute(query).fetchone()
    top = row[0][0]["Plan"]
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 20 * 2_000


def add_history(owner: Connection, queue: str, rows: int) -> None:
    """Insert `rows` ended attempts of a queue."""
    owner.execute(
        """
        insert into rowq.history (
            queue_id, attempt, message_id, claim_id, leased_at, ended_at, outcome
        )
        select q.queue_id, 1, n, n, clock_timestamp(), clock_timestamp(), 'completed'
        from rowq.queue q, generate_series(1, %s) n
        where q.queue_name = %s
        """,
        [rows, queue],
    )
