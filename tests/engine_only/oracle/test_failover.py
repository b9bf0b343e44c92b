"""health on Oracle after sequences restart, as after an import of rows only."""

import re

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of


def found(connection: Connection) -> Row:
    """Return health's check of the sequences."""
    [row] = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
    return row


@pytest.mark.promise("P08")
def test_health_detects_sequences_that_restart(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b", "c")
    before = dequeue_one(connection, queue).claim_id
    assert found(connection).status == "ok"
    try:
        for sequence in ("rowq_message_seq", "rowq_claim_seq"):
            dialect_of(connection).execute(
                connection, f"alter sequence {sequence} restart start with 1"
            )
        row = found(connection)
        assert row.status == "critical"
    finally:
        # Other tests must not reuse ids.
        statements = re.findall(r"alter sequence [^;]+(?=;)", found(connection).detail)
        for statement in statements:
            dialect_of(connection).execute(connection, statement)
    named = [statement.split()[2] for statement in statements]
    assert named == ["rowq_message_seq", "rowq_claim_seq"]
    assert found(connection).status == "ok"
    assert dequeue_one(connection, queue).claim_id > before + 100000
