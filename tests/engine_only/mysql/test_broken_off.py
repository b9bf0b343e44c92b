"""A guest's call that is killed while it waits leaves nothing that a commit would make permanent.

Each call is stopped at every table that it comes to, which another session has locked.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest

from tests.engines.base import Connection, wait_until
from tests.helpers.broken_off import ROUTINES, fill
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect, new_queue

TABLES = (
    "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "lane", "queue_lock",
    "limit_lock", "started",
)  # fmt: skip
WAITS = """
    select count(*) from information_schema.processlist
    where id = %s and state like 'Waiting for table metadata lock%%'
"""


def stored(connection: Connection) -> dict[str, list[Any]]:
    """Return every row of every table, in the order of its key."""
    return {
        table: list(connection.execute(f"select * from rowq.{table}").fetchall())
        for table in TABLES
    }


@pytest.mark.promise("P01", "P02", "P17")
@pytest.mark.parametrize("routine", ROUTINES)
def test_a_call_that_is_killed_at_any_table_leaves_no_half_to_commit(
    connection: Connection, connect: Connect, queue_name: str, routine: str
) -> None:
    arguments = fill(new_queue(connection, queue_name, archive_days=5))
    before = stored(connection)
    stopped_at = []
    # A dequeue reads the messages when it is done otherwise: see the test below.
    for table in TABLES[routine == "dequeue_fast" :]:
        guest, holder = connect(), connect()
        guest.execute("begin")
        holder.execute(f"lock tables rowq.{table} write")
        given = {"queue_name": queue_name, **arguments.get(routine, {})}
        if is_killed_in_its_wait(connection, guest, routine, given):
            stopped_at.append(table)
            holder.execute("unlock tables")
            guest.execute("commit")
        else:
            holder.execute("unlock tables")
            guest.execute("rollback")
        assert stored(connection) == before, table
        holder.close()
        guest.close()
    assert stopped_at


def is_killed_in_its_wait(
    admin: Connection, guest: Connection, routine: str, given: dict[str, Any]
) -> bool:
    """Call a routine, kill the call when it waits for a table, and return whether it did."""
    number = guest.thread_id()
    with ThreadPoolExecutor(1) as threads:
        calling = threads.submit(call, guest, routine, **given)

        def has_stopped() -> bool:
            ((waiting,),) = admin.execute(WAITS, [number]).fetchall()
            return bool(waiting) or calling.done()

        wait_until(has_stopped, f"{routine} waits, or ends")
        if calling.done():
            calling.result()
            return False
        admin.execute(f"kill query {number}")
        with pytest.raises(pymysql.Error):
            calling.result(30)
        return True


@pytest.mark.promise("P07", "P17", "P28", "P29")
@pytest.mark.parametrize("table", ["limit_lock", "claim", "started"])
def test_a_dequeue_under_limits_that_is_killed_leaves_no_half_to_commit_and_takes_no_room(
    connection: Connection, connect: Connect, queue_name: str, table: str
) -> None:
    queue = new_queue(connection, queue_name, max_leased=2, rate_limit=2, rate_seconds=1000)
    queue.enqueue("a", "b", "c")
    before = stored(connection)
    guest, holder = connect(), connect()
    guest.execute("set session transaction isolation level read committed")
    guest.execute("begin")
    holder.execute(f"lock tables rowq.{table} write")
    assert is_killed_in_its_wait(connection, guest, "dequeue_fast", {"queue_name": queue_name})
    holder.execute("unlock tables")
    guest.execute("commit")
    assert stored(connection) == before
    assert len(queue.dequeue(9)) == 2


@pytest.mark.promise("P02", "P09", "P17")
def test_a_dequeue_that_is_killed_before_its_rows_are_read_is_reaped_when_its_lease_runs_out(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    enqueue(connection, queue_name, "never read")
    guest, holder = connect(), connect()
    guest.execute("begin")
    holder.execute("lock tables rowq.message write")
    assert is_killed_in_its_wait(connection, guest, "dequeue_fast", {"queue_name": queue_name})
    holder.execute("unlock tables")
    guest.execute("commit")
    assert dequeue(connection, queue_name) == []
    dialect_of(connection).pass_seconds(connection, queue_name, 60)
    assert call_one(connection, "maintain", queue_name=queue_name).reaped == 1
    assert dequeue_one(connection, queue_name).body == "never read"
