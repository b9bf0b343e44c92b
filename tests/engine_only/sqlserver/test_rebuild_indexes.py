"""RebuildIndexes: worn, hot and small indexes."""

from contextlib import closing
from typing import Any

import pytest

from rowq.engines.sqlserver.driver import load_driver
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one
from tests.helpers.dialects import dialect_of

KEPT = """
    select o.name, i.name, i.allow_row_locks, i.allow_page_locks, s.no_recompute, i.fill_factor
    from sys.objects o
    join sys.indexes i on i.object_id = o.object_id
    join sys.stats s on s.object_id = i.object_id and s.stats_id = i.index_id
    where o.schema_id = schema_id(N'rowq') and o.type = 'U'
    order by o.name, i.name
    """
COLUMNS = (
    "table_name", "index_name", "partition_number", "pages", "density", "fragmentation", "outcome",
    "detail",
)  # fmt: skip


def rebuild(connection: Connection, **arguments: int) -> list[dict[str, Any]]:
    """Call RebuildIndexes and return its rows."""
    passed = ", ".join(f"@{name} = {value}" for name, value in arguments.items())
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"exec rowq.RebuildIndexes {passed}")
        assert tuple(column[0] for column in cursor.description) == COLUMNS
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in cursor.fetchall()]
        while cursor.nextset():
            assert not cursor.description
    return rows


def refused(connection: Connection, **arguments: int) -> str:
    with pytest.raises(load_driver().Error) as caught:
        rebuild(connection, **arguments)
    return dialect_of(connection).error(caught.value)[0]


@pytest.mark.pitfall("sqlserver 16")
@pytest.mark.requires("genuine")
def test_rebuild_indexes_keeps_the_settings_of_an_index(connection: Connection, queue: str) -> None:
    # Keys in random order split pages.
    keys = [str(number * 7919 % 10007) for number in range(5000)]
    for start in range(0, len(keys), 100):
        messages = [{"dedup_key": key} for key in keys[start : start + 100]]
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    before = [tuple(row) for row in connection.execute(KEPT).fetchall()]
    worn = {row["table_name"]: row for row in rebuild(connection, min_pages=1)}
    assert worn["dedup"]["fragmentation"] >= 30
    assert worn["dedup"]["outcome"] in {"rebuilt_online", "rebuilt"}
    assert worn["dedup"]["detail"] is None
    assert [tuple(row) for row in connection.execute(KEPT).fetchall()] == before
    again = {row["table_name"]: row for row in rebuild(connection, min_pages=1)}
    if "dedup" in again:
        assert again["dedup"]["fragmentation"] < worn["dedup"]["fragmentation"]


@pytest.mark.requires("genuine")
def test_rebuild_indexes_leaves_small_indexes(connection: Connection) -> None:
    assert rebuild(connection, min_pages=1_000_000_000) == []


@pytest.mark.promise("P17")
@pytest.mark.requires("genuine")
def test_rebuild_indexes_refuses_an_open_transaction(connection: Connection, queue: str) -> None:
    dialect_of(connection).begin(connection)
    call_one(connection, "enqueue", queue_name=queue, body="kept")
    assert refused(connection) == "RQ713"
    assert refused(connection, min_pages=0) == "RQ711"
    dialect_of(connection).commit(connection)
    assert call_one(connection, "queue_stats", queue_name=queue).ready == 1
