"""A cancel by the user ends a call wherever it waits, changes nothing, and the next call does all.

Where a lock time-out comes at the very end of a wait, and the same statement waits once more,
PostgreSQL shows it as a cancel by the user. Nobody can tell the two apart, so neither is swallowed:
what a call may lose by it is that it has to be called again.
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
    """Return a session in a database whose only queue keeps everything."""
    call(owner, "create_queue", queue_name=QUEUE, archive_days=1, history_days=1, result_seconds=1)
    return owner


def be_patient(connection: Connection, routine: str) -> None:
    """Let a routine wait for a minute."""
    connection.execute(f"alter routine rowq.{routine} set lock_timeout = '60s'")


@contextmanager
def cancelled(
    server: Server, holder: Connection, waiter: Connection, work: Callable[[Connection], object]
) -> Iterator[None]:
    """Let work wait for what the block locks, and cancel it there."""
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
def test_a_cancel_ends_a_drop_that_waits(
    queue: Connection, open_owner: Open, server: Server, table: str
) -> None:
    be_patient(queue, "drop_queue(text, boolean)")
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
def test_a_drop_waits_for_tables_and_not_for_rows(
    queue: Connection, open_owner: Open, server: Server, table: str
) -> None:
    """A wait for a row is two waits in a statement, so its time-out could show as a cancel."""
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

        be_patient(queue, "drop_queue(text, boolean)")
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
def test_each_table_that_a_drop_waits_for_has_a_statement_of_its_own(queue: Connection) -> None:
    """So a time-out that comes at the end of a wait is seen before the next wait begins."""
    [(source,)] = queue.execute(
        "select prosrc from pg_proc where oid = 'rowq.drop_queue(text, boolean)'::regprocedure"
    ).fetchall()
    locked = re.findall(r"lock table ([^;]+?) in exclusive mode;", source)
    assert len(locked) == 21
    assert all(re.fullmatch(r"rowq\.\w+", tables) for tables in locked)


@pytest.mark.promise("P19", "P30")
def test_a_cancel_ends_a_maintain_that_waits_for_a_producer_of_a_schedule_s_group(
    queue: Connection, open_owner: Open, server: Server
) -> None:
    be_patient(queue, "internal_run_due")
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
def test_a_cancel_ends_a_maintain_that_waits_for_what_is_kept(
    queue: Connection, open_owner: Open, server: Server, table: str, routine: str
) -> None:
    be_patient(queue, routine)
    enqueue(queue, QUEUE, "x")
    claim = dequeue(queue, QUEUE)[0].claim_id
    call(queue, "complete", queue_name=QUEUE, claim_id=claim)
    pass_seconds(queue, QUEUE, 3 * DAY)
    enqueue(queue, QUEUE, "delayed", delay_seconds=10)
    pass_seconds(queue, QUEUE, 60)
    other = open_owner()
    with cancelled(server, queue, other, maintain):
        queue.execute(f"lock table rowq.{table} in share row exclusive mode")
    assert states(queue) == (0, 1), "what was done before the wait is taken back, too"
    assert maintain(other) == 1
    assert states(queue) == (1, 0)


def maintain(session: Connection) -> int:
    """Keep house and return how many messages were promoted."""
    promoted: int = call_one(session, "maintain", queue_name=QUEUE).promoted
    return promoted


def states(session: Connection) -> tuple[int, int]:
    """Return how many messages are ready and delayed."""
    row = call_one(session, "queue_stats", queue_name=QUEUE)
    return row.ready, row.delayed
