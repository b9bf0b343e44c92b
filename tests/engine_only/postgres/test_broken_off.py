"""A guest's call that is cancelled half-way leaves nothing that a commit would make permanent.

Each call is stopped at every table that it comes to, which another session has locked.
"""

from typing import Any

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection
from tests.helpers.queues import CheckedQueue

TABLES = ("message", "ready", "delayed", "claim", "dead", "dedup", "finished", "floor", "archive")
FINISHING = ("complete", "retry_later", "release", "fail_now", "extend_lease")
HOUSEKEEPING = ("dequeue_fast", "promote", "reap", "archive", "maintain")
PRODUCING: dict[str, dict[str, Any]] = {
    "enqueue": {"body": "new", "dedup_key": "new"},
    "enqueue_batch": {"messages": [{"body": "new", "dedup_key": "new"}, {"delay_seconds": 9}]},
}


def stored(connection: Connection) -> dict[str, list[Any]]:
    """Return every row of every table."""
    return {
        table: connection.execute(f"select t::text from rowq.{table} t order by 1").fetchall()
        for table in TABLES
    }


@pytest.mark.promise("P01", "P02", "P17")
@pytest.mark.parametrize("routine", [*PRODUCING, *FINISHING, *HOUSEKEEPING, "cancel", "reset"])
def test_a_call_that_is_cancelled_at_any_table_leaves_no_half_to_commit(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue, routine: str
) -> None:
    own_queue.call("alter_queue", archive_days=5)
    own_queue.enqueue("to be dead")
    own_queue.call("fail_now", claim_id=own_queue.dequeue_one().claim_id)
    own_queue.enqueue("finished")
    own_queue.call("complete", claim_id=own_queue.dequeue_one().claim_id)
    own_queue.enqueue("due", delay_seconds=30)
    own_queue.enqueue("late")
    own_queue.call_one("dequeue_fast", lease_seconds=10)
    own_queue.pass_seconds(60)
    [held] = own_queue.enqueue("held", priority=0, dedup_key="held")
    claim = own_queue.dequeue_one().claim_id
    [waits] = own_queue.enqueue("ready")
    dead = [row.message_id for row in own_queue.call("list_dead")]
    arguments: dict[str, dict[str, Any]] = {
        **PRODUCING,
        **{name: {"claim_id": claim} for name in FINISHING},
        "cancel": {"message_ids": [*dead, held, waits]},
        "reset": {"message_ids": dead},
    }
    before = stored(owner)
    stopped_at = []
    for table in TABLES:
        guest, holder = own_queue.via(open_owner()), open_owner()
        holder.execute("begin")
        holder.execute(f"lock table rowq.{table} in access exclusive mode")
        guest.connection.execute("begin")
        guest.connection.execute("savepoint before_the_call")
        guest.connection.execute("set local statement_timeout = '150ms'")
        try:
            guest.call(routine, **arguments.get(routine, {}))
        except psycopg.errors.QueryCanceled:
            stopped_at.append(table)
            guest.connection.execute("rollback to savepoint before_the_call")
            holder.execute("rollback")
            guest.connection.execute("commit")
            assert stored(owner) == before
        else:
            guest.connection.execute("rollback")
            holder.execute("rollback")
    assert stopped_at
