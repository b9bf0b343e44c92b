"""The archive on Oracle: a plain table, or partitioned by day."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from rowq.contract import sql_directory
from rowq.tools.engines.oracle.script import units
from rowq.tools.migrate import migrate
from tests.contract.test_archive import DAY, finish
from tests.engine_only.oracle.installed import rows
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, call_one, rolled_back, state_of, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.promise("P19")

DAYS = (
    "select p.partition_name from user_tab_partitions p"
    " where p.table_name = 'ROWQ_ARCHIVE' and p.interval = 'YES'"
)


def archive_at_age(connection: Connection, queue: str, days: int, *bodies: str) -> list[int]:
    """Archive messages that finished `days` ago."""
    ids = finish(connection, queue, *bodies)
    pass_seconds(connection, queue, days * DAY)
    assert call_one(connection, "archive", queue_name=queue).archived == len(bodies)
    return ids


def count(connection: Connection) -> int:
    """Count the archive, as a report might."""
    ((found,),) = rows(connection, "select count(*) from rowq_archive")
    return int(found)


def test_plain_archive_is_purged_beside_a_long_reader(
    connection: Connection, connect: Connect, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=2)
    archive_at_age(connection, queue, 9, "a", "b", "c")
    [young] = archive_at_age(connection, queue, 1, "d")
    reader = connect()
    dialect_of(reader).begin(reader, "serializable")
    before = count(reader)
    purged = [
        call_one(connection, "purge_archive", queue_name=queue, batch_size=2) for _ in range(3)
    ]
    assert [(row.purged, row.partitions_dropped) for row in purged] == [(2, 0), (1, 0), (0, 0)]
    assert count(reader) == before
    dialect_of(reader).rollback(reader)
    assert state_of(connection, queue, young) == "completed"


def test_new_archive_day_blocks_no_session(
    connection: Connection, connect: Connect, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=30)
    for _ in range(2):
        finish(connection, queue, "a")
        pass_seconds(connection, queue, DAY)
    other = connect()
    other.call_timeout = 5000
    with transaction(connection):
        assert call_one(connection, "archive", queue_name=queue, batch_size=1).archived == 1
        assert call_one(other, "archive", queue_name=queue).archived == 1


@pytest.fixture
def days(server: OracleServer, empty_database: str) -> Iterator[Connection]:
    """Return a session with a partitioned archive; skip without that option."""
    if server.query("select o.value from v$option o where o.parameter = 'Partitioning'") != [
        ("TRUE",)
    ]:
        pytest.skip(
            "the server lacks the Partitioning option; to run it: Oracle Free or Enterprise"
        )
    migrate(empty_database)
    script = (sql_directory() / "oracle" / "partition_archive.sql").read_text(encoding="utf-8")
    with closing(server.connect(empty_database)) as session:
        for _ in range(2):
            for unit in units(script):
                dialect_of(session).execute(session, unit)
        yield session


def test_partitioned_archive_drops_days_no_queue_needs(days: Connection) -> None:
    call(days, "create_queue", queue_name="q", archive_days=1)
    call(days, "create_queue", queue_name="other", archive_days=30)
    archive_at_age(days, "q", 10, "a", "b")
    [others] = archive_at_age(days, "other", 10, "c")
    row = call_one(days, "purge_archive", queue_name="q")
    assert (row.purged, row.partitions_dropped) == (2, 0)
    assert state_of(days, "other", others) == "completed"
    call(days, "alter_queue", queue_name="other", archive_days=2)
    row = call_one(days, "purge_archive", queue_name="q")
    assert (row.purged, row.partitions_dropped) == (0, 1)
    assert state_of(days, "other", others) is None
    assert rows(days, DAYS) == []


@pytest.mark.pitfall("oracle 15")
def test_day_is_dropped_in_an_autonomous_transaction(
    days: Connection,
) -> None:
    call(days, "create_queue", queue_name="q", archive_days=1)
    archive_at_age(days, "q", 10, "a")
    with rolled_back(days):
        finish(days, "q", "b")
        row = call_one(days, "maintain", queue_name="q")
        assert row.partitions_dropped == 1
    assert (count(days), call_one(days, "queue_stats", queue_name="q").ready) == (0, 0)


def test_day_with_locked_rows_is_dropped_later(
    server: OracleServer, empty_database: str, days: Connection
) -> None:
    call(days, "create_queue", queue_name="q", archive_days=1)
    archive_at_age(days, "q", 10, "a")
    with closing(server.connect(empty_database)) as other:
        with rolled_back(other):
            dialect_of(other).execute(other, "update rowq_archive set lane = lane")
            assert call_one(days, "maintain", queue_name="q").partitions_dropped == 0
        assert call_one(days, "maintain", queue_name="q").partitions_dropped == 1
