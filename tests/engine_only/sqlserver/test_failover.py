"""health on SQL Server after sequences restart, as in a copy of rows only."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.helpers.dialects import dialect_of
from tests.helpers.sequences import check_restart

pytestmark = [pytest.mark.promise("P08"), pytest.mark.requires("genuine")]


def test_health_detects_sequences_that_restart(connection: Connection, queue: str) -> None:
    names = ("rowq.message_seq", "rowq.claim_seq")
    check_restart(connection, queue, "alter sequence {} restart with 1", *names)


def test_health_reports_invisible_sequences(connection: Connection) -> None:
    dialect = dialect_of(connection)
    dialect.execute(connection, "create user rowq_test_sequences without login")
    try:
        dialect.execute(connection, "alter role rowq_monitor add member rowq_test_sequences")
        dialect.execute(connection, "execute as user = N'rowq_test_sequences'")
        rows = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
        dialect.execute(connection, "revert")
    finally:
        dialect.execute(connection, "drop user rowq_test_sequences")
    assert [(row.status, row.value) for row in rows] == [("ok", 0)] * 3
    assert all(": unknown, " in row.detail for row in rows)
