"""A cancel by the user ends a waiting call and changes nothing.

If a lock timeout fires at the very end of a wait, and the same statement waits again, PostgreSQL
reports it as a cancel by the user. The two look the same, so neither is caught.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import call, call_one, dequeue, enqueue, state_of
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.pitfall("postgres 27")

QUEUE = "q"
DAY = 86400


@pytest.fixture
def queue(owner: Connection) -> Connection:
    """Return a session in a database whose only queue has archive, history and results."""
    call(owner, "create_queue", queue_name=QUEUE, archive_days=1, history_days=1, result_seconds=1)
    return owner


def let_wait(connection: Connection, routine: str) -> None:
    """Let a routine wait for a minute."""
    connection.execute(f"alter routine rowq.{routine} set lock_timeout = '60s'")


@contextmanager
def cancelled(
    server: Server, holder: Connection, waiter: Connection, work: Callable[[Connection], object]
) -> Iterator[None]:
    """Make work wait for what the block locks, and cancel it."""
    own = server.session_id(waiter)
    with ThreadPoolExecutor(1) as pool, holder.transaction():
        yield
        running = pool.submit(work, waiter)
        wait_until_blocked(server, own, by=server.session_id(holder))
        holder.execute("select pg_cancel_backend(%s)", [own])
        with pytest.raises(psycopg.errors.QueryCanceled):
            running.result(20)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("table", ["queue", "ready", "message", "archive", "result", "schedule"])
def test_cancel_ends_a_waiting_drop(
    queue: Connection, open_owner: Open, server: Server, table: str
) -> None:
    let_wait(queue, "drop_queue(text, boolean)")
    call(queue, "create_schedule", queue_name=QUEUE, schedule_name="s", interval_seconds=3600)
    other = open_owner()

    def drop(session: Connection) -> object:
        return call(session, "drop_queue", queue_name=QUEUE, force=True)

    with cancelled(server, queue, other, drop):
        if table == "schedule":
            queue.execute("select from rowq.schedule for update")
        else:
            queue.execute(f"lock table rowq.{table} in row exclusive mode")
    (message,) = enqueue(queue, QUEUE, "is there")
    assert state_of(queue, QUEUE, message) == "ready"
    drop(other)
    assert call(queue, "queue_stats") == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("table", ["schedule", "expiry", "history"])
def test_drop_waits_for_tables_not_rows(
    queue: Connection, open_owner: Open, server: Server, table: str
) -> None:
    """A row wait is two waits in one statement: its timeout could be reported as a cancel."""
    call(queue, "create_schedule", queue_name=QUEUE, schedule_name="s", interval_seconds=3600)
    call(queue, "enqueue", queue_name=QUEUE, body="x", expire_seconds=3600)
    claim = dequeue(queue, QUEUE)[0].claim_id
    call(queue, "complete", queue_name=QUEUE, claim_id=claim)
    other = open_owner()
    with queue.transaction():
        [_] = queue.execute(f"select from rowq.{table} for update").fetchall()
        with pytest.raises(psycopg.Error) as refusal:
            call(other, "drop_queue", queue_name=QUEUE, force=True)
        assert refusal.value.sqlstate == "RQ705"

        let_wait(queue, "drop_queue(text, boolean)")
        with ThreadPoolExecutor(1) as pool:
            dropping = pool.submit(call, other, "drop_queue", queue_name=QUEUE, force=True)
            wait_until_blocked(server, server.session_id(other), by=server.session_id(queue))
            waits = queue.execute(
                "select locktype, relation::regclass::text from pg_locks where not granted"
            ).fetchall()
            queue.execute("select pg_cancel_backend(%s)", [server.session_id(other)])
            with pytest.raises(psycopg.errors.QueryCanceled):
                dropping.result(20)
    assert waits == [("relation", f"rowq.{table}")]


@pytest.mark.promise("P15")
def test_drop_locks_each_table_in_its_own_statement(queue: Connection) -> None:
    """A timeout at the end of a wait is then seen before the next wait begins."""
    [(source,)] = queue.execute(
        "select prosrc from pg_proc where oid = 'rowq.drop_queue(text, boolean)'::regprocedure"
    ).fetchall()
    locked = re.findall(r"lock table ([^;]+?) in exclusive mode;", source)
    assert len(locked) == 21
    assert all(re.fullmatch(r"rowq\.\w+", tables) for tables in locked)


@pytest.mark.promise("P19", "P30")
def test_cancel_ends_a_maintain_waiting_for_a_group(
    queue: Connection, open_owner: Open, server: Server
) -> None:
    let_wait(queue, "internal_run_due")
    call(
        queue,
        "create_schedule",
        queue_name=QUEUE,
        schedule_name="s",
        interval_seconds=3600,
        group_key="g",
    )
    enqueue(queue, QUEUE, "delayed", delay_seconds=10)
    pass_seconds(queue, QUEUE, 3700)
    other = open_owner()
    with cancelled(server, queue, other, maintain):
        enqueue(queue, QUEUE, "opens the group", group_key="g")
    assert states(queue) == (1, 1)
    assert maintain(other) == 1
    assert states(queue) == (2, 0)
    assert call_one(queue, "queue_stats", queue_name=QUEUE).blocked == 1, "the message of the tick"


@pytest.mark.promise("P19")
@pytest.mark.parametrize(
    ("table", "routine"),
    [
        ("archive", "internal_open_day(timestamp with time zone)"),
        ("result", "internal_purge_results"),
        ("history", "internal_purge_history"),
    ],
)
def test_cancel_ends_a_maintain_waiting_for_retention_tables(
    queue: Connection, open_owner: Open, server: Server, table: str, routine: str
) -> None:
    let_wait(queue, routine)
    enqueue(queue, QUEUE, "x")
    claim = dequeue(queue, QUEUE)[0].claim_id
    call(queue, "complete", queue_name=QUEUE, claim_id=claim)
    pass_seconds(queue, QUEUE, 3 * DAY)
    enqueue(queue, QUEUE, "delayed", delay_seconds=10)
    pass_seconds(queue, QUEUE, 60)
    other = open_owner()
    with cancelled(server, queue, other, maintain):
        queue.execute(f"lock table rowq.{table} in share row exclusive mode")
    assert states(queue) == (0, 1), "the work before the wait is rolled back"
    assert maintain(other) == 1
    assert states(queue) == (1, 0)


def maintain(session: Connection) -> int:
    """Run maintain and return how many messages were promoted."""
    promoted: int = call_one(session, "maintain", queue_name=QUEUE).promoted
    return promoted


def states(session: Connection) -> tuple[int, int]:
    """Return how many messages are ready and delayed."""
    row = call_one(session, "queue_stats", queue_name=QUEUE)
    return row.ready, row.delayed
