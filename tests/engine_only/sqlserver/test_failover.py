"""health on SQL Server after sequences restart, as in a copy of rows only."""

import re

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of

pytestmark = [pytest.mark.promise("P08"), pytest.mark.requires("genuine")]


def found(connection: Connection) -> Row:
    """Return health's check of the sequences."""
    [row] = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
    return row


def test_health_detects_sequences_that_restart(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b", "c")
    dequeue_one(connection, queue)
    before = dequeue_one(connection, queue).claim_id
    assert found(connection).status == "ok"
    try:
        for sequence in ("message_seq", "claim_seq"):
            dialect_of(connection).execute(
                connection, f"alter sequence rowq.{sequence} restart with 1"
            )
        row = found(connection)
        assert row.status == "critical"
    finally:
        # Other tests must not reuse ids.
        statements = re.findall(r"alter sequence [^;]+;", found(connection).detail)
        for statement in statements:
            dialect_of(connection).execute(connection, statement)
    named = [statement.split()[2] for statement in statements]
    assert named == ["rowq.message_seq", "rowq.claim_seq"]
    assert found(connection).status == "ok"
    assert dequeue_one(connection, queue).claim_id > before + 100000


def test_health_reports_invisible_sequences(connection: Connection) -> None:
    dialect = dialect_of(connection)
    dialect.execute(connection, "create user rowq_test_sequences without login")
    try:
        dialect.execute(connection, "alter role rowq_monitor add member rowq_test_sequences")
        dialect.execute(connection, "execute as user = N'rowq_test_sequences'")
        row = found(connection)
        dialect.execute(connection, "revert")
    finally:
        dialect.execute(connection, "drop user rowq_test_sequences")
    assert (row.status, row.value) == ("ok", 0)
    assert row.detail.startswith("unknown: ")
