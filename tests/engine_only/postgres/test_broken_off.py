"""A call cancelled in the caller's transaction leaves nothing to commit.

Each call is cancelled at every table that it reads, where another session holds a lock.
"""

from typing import Any

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection
from tests.helpers.broken_off import ROUTINES, fill
from tests.helpers.queues import CheckedQueue

TABLES = (
    "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "floor", "archive",
    "limit_lock", "started",
)  # fmt: skip


def stored(connection: Connection) -> dict[str, list[Any]]:
    """Return every row of every table."""
    return {
        table: connection.execute(f"select t::text from rowq.{table} t order by 1").fetchall()
        for table in TABLES
    }


@pytest.mark.promise("P01", "P02", "P17")
@pytest.mark.parametrize("routine", ROUTINES)
def test_call_cancelled_at_any_table_leaves_nothing_to_commit(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue, routine: str
) -> None:
    own_queue.call("alter_queue", archive_days=5)
    arguments = fill(own_queue)
    before = stored(owner)
    stopped_at = []
    for table in TABLES:
        caller, holder = own_queue.via(open_owner()), open_owner()
        holder.execute("begin")
        holder.execute(f"lock table rowq.{table} in access exclusive mode")
        caller.connection.execute("begin")
        caller.connection.execute("savepoint before_the_call")
        caller.connection.execute("set local statement_timeout = '150ms'")
        try:
            caller.call(routine, **arguments.get(routine, {}))
        except psycopg.errors.QueryCanceled:
            stopped_at.append(table)
            caller.connection.execute("rollback to savepoint before_the_call")
            holder.execute("rollback")
            caller.connection.execute("commit")
            assert stored(owner) == before
        else:
            caller.connection.execute("rollback")
            holder.execute("rollback")
    assert stopped_at
