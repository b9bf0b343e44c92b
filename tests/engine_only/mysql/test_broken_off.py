"""A call killed in the caller's transaction leaves nothing to commit.

Each call is killed at every table that it reads, where another session holds a lock.
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
    """Return every row of every table."""
    return {
        table: list(connection.execute(f"select * from rowq.{table}").fetchall())
        for table in TABLES
    }


@pytest.mark.promise("P01", "P02", "P17")
@pytest.mark.parametrize("routine", ROUTINES)
def test_call_killed_at_any_table_leaves_nothing_to_commit(
    connection: Connection, connect: Connect, queue_name: str, routine: str
) -> None:
    arguments = fill(new_queue(connection, queue_name, archive_days=5))
    before = stored(connection)
    stopped_at = []
    # A dequeue reads the messages last: see the test below.
    for table in TABLES[routine == "dequeue_fast" :]:
        caller, holder = connect(), connect()
        caller.execute("begin")
        holder.execute(f"lock tables rowq.{table} write")
        own = {"queue_name": queue_name, **arguments.get(routine, {})}
        if is_killed_in_its_wait(connection, caller, routine, own):
            stopped_at.append(table)
            holder.execute("unlock tables")
            caller.execute("commit")
        else:
            holder.execute("unlock tables")
            caller.execute("rollback")
        assert stored(connection) == before, table
        holder.close()
        caller.close()
    assert stopped_at


def is_killed_in_its_wait(
    admin: Connection, caller: Connection, routine: str, arguments: dict[str, Any]
) -> bool:
    """Call a routine, kill it if it waits for a table, and return whether it did."""
    number = caller.thread_id()
    with ThreadPoolExecutor(1) as threads:
        calling = threads.submit(call, caller, routine, **arguments)

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
def test_killed_dequeue_uses_no_capacity_of_limits(
    connection: Connection, connect: Connect, queue_name: str, table: str
) -> None:
    queue = new_queue(connection, queue_name, max_leased=2, rate_limit=2, rate_seconds=1000)
    queue.enqueue("a", "b", "c")
    before = stored(connection)
    caller, holder = connect(), connect()
    caller.execute("set session transaction isolation level read committed")
    caller.execute("begin")
    holder.execute(f"lock tables rowq.{table} write")
    assert is_killed_in_its_wait(connection, caller, "dequeue_fast", {"queue_name": queue_name})
    holder.execute("unlock tables")
    caller.execute("commit")
    assert stored(connection) == before
    assert len(queue.dequeue(9)) == 2


@pytest.mark.promise("P02", "P09", "P17")
def test_dequeue_killed_before_its_result_is_reaped(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    enqueue(connection, queue_name, "never read")
    caller, holder = connect(), connect()
    caller.execute("begin")
    holder.execute("lock tables rowq.message write")
    assert is_killed_in_its_wait(connection, caller, "dequeue_fast", {"queue_name": queue_name})
    holder.execute("unlock tables")
    caller.execute("commit")
    assert dequeue(connection, queue_name) == []
    dialect_of(connection).pass_seconds(connection, queue_name, 60)
    assert call_one(connection, "maintain", queue_name=queue_name).reaped == 1
    assert dequeue_one(connection, queue_name).body == "never read"
