"""Sequences that restart, as after a copy of rows without them."""

from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of


def behind(connection: Connection) -> set[str]:
    """Return the kinds of numbers that health reports as behind."""
    rows = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
    assert [row.detail.split()[0] for row in rows] == ["claim", "message", "queue"]
    return {row.detail.split()[0] for row in rows if row.status == "critical"}


def check_restart(connection: Connection, queue: str, restart: str, *sequences: str) -> None:
    """Check that health detects restarted sequences, and that after_failover repairs them."""
    execute = dialect_of(connection).execute
    enqueue(connection, queue, "a", "b", "c")
    before = dequeue_one(connection, queue).claim_id
    assert behind(connection) == set()
    try:
        for sequence in sequences:
            execute(connection, restart.format(sequence))
        assert behind(connection) == {"claim", "message"}
    finally:
        # Other tests must not reuse ids.
        call(connection, "after_failover")
    assert behind(connection) == set()
    assert dequeue_one(connection, queue).claim_id > before + 10**9 - 1
