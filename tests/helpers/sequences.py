"""Sequences that restart, as after a copy of rows without them."""

import re

from tests.contract.test_health import check
from tests.engines.base import Connection
from tests.helpers.calls import dequeue_one, enqueue
from tests.helpers.dialects import dialect_of


def check_restart(connection: Connection, queue: str, restart: str, *sequences: str) -> None:
    """Check that health detects restarted sequences, and that its statements repair them."""
    execute = dialect_of(connection).execute
    enqueue(connection, queue, "a", "b", "c")
    before = dequeue_one(connection, queue).claim_id
    assert check(connection, "sequence_behind").status == "ok"
    try:
        for sequence in sequences:
            execute(connection, restart.format(sequence))
        assert check(connection, "sequence_behind").status == "critical"
    finally:
        # Other tests must not reuse ids.
        detail = check(connection, "sequence_behind").detail
        statements = re.findall(r"alter sequence [^;]+(?=;)", detail)
        for statement in statements:
            execute(connection, statement)
    assert [statement.split()[2] for statement in statements] == list(sequences)
    assert check(connection, "sequence_behind").status == "ok"
    assert dequeue_one(connection, queue).claim_id > before + 100000
