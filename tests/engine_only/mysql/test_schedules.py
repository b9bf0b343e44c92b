"""Schedules on MariaDB and MySQL: time zone tables, transactions and plans."""

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rowq.tools import migrate
from tests.engine_only.mysql.costs import queue_id_of
from tests.engine_only.mysql.statements import accesses, run_by
from tests.engines.base import Connection
from tests.engines.mysql.server import MysqlServer
from tests.engines.mysql.zones import ZONES
from tests.helpers.calls import call, call_one, dequeue, enqueue, refused
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds, tick

END = datetime(2038, 1, 1, tzinfo=UTC)


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


def schedule(connection: Connection, queue: str, name: str = "often", **settings: Any) -> None:
    """Create an hourly schedule whose first tick is due."""
    arguments = {"interval_seconds": 3600, **settings}
    call(connection, "create_schedule", queue_name=queue, schedule_name=name, **arguments)
    make_due(connection, queue)


def make_due(connection: Connection, queue: str) -> None:
    connection.execute(
        "update rowq.schedule set next_run_at = next_run_at - interval 3600 second,"
        " starts_at = starts_at - interval 3600 second where queue_id = %s",
        [queue_id_of(connection, queue)],
    )


def shown(connection: Connection, queue: str) -> list[tuple[str, str | None, bool]]:
    """Return each schedule's name, its last error, and whether it is due."""
    rows = call(connection, "list_schedules", queue_name=queue)
    now = datetime.now(UTC)
    return [(row.schedule_name, row.last_error, row.next_run_at <= now) for row in rows]


@pytest.fixture
def without_zones(server: MysqlServer) -> Iterator[Connection]:
    """Return a session of a new server without time zones; a used server caches them."""
    with contextlib.closing(server.another()) as fresh:
        url = fresh.fresh_database()
        with fresh.connect(url) as connection:
            connection.execute("delete from mysql.time_zone_name")
            migrate.migrate(url)
            yield connection


@pytest.mark.promise("P15")
def test_server_has_the_time_zones_of_the_tests(connection: Connection) -> None:
    for name in ZONES:
        query = "select convert_tz('2030-07-01', '+00:00', %s)"
        ((found,),) = connection.execute(query, [name]).fetchall()
        assert found is not None, f"{name}: load the server's time zone tables to run the tests"
    # Berlin has summer time then: the tables reach 2037.
    query = "select hour(convert_tz('2030-07-01', '+00:00', 'Europe/Berlin'))"
    assert connection.execute(query).fetchone() == (2,)


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "zone", ["EST5EDT4", "Foo/Bar", "+02:00", "SYSTEM", "system", "UTC+3", "UTC ", "Europe/Berlin "]
)
def test_create_schedule_accepts_only_region_names(
    connection: Connection, queue: str, zone: str
) -> None:
    text = refused(
        connection, "RQ711", "create_schedule", queue_name=queue, schedule_name="a",
        cron="* * * * *", time_zone=zone,
    )  # fmt: skip
    assert "time_zone must be UTC or a name the server knows" in text


@pytest.mark.pitfall("mysql 24")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("cron", ["0 0 * * *", "* * * * *"])
def test_time_zone_has_no_tick_after_2037_except_utc(connection: Connection, cron: str) -> None:
    times = {"cron": cron, "after": END - timedelta(minutes=2), "max_ticks": 3}
    there = [row.tick for row in call(connection, "next_ticks", time_zone="Asia/Kolkata", **times)]
    assert there == ([] if cron[0] == "0" else [END - timedelta(minutes=1)])
    assert len(call(connection, "next_ticks", **times)) == 3
    late = {**times, "after": datetime(2099, 12, 31, tzinfo=UTC)}
    assert call(connection, "next_ticks", time_zone="Europe/Berlin", **late) == []
    assert len(call(connection, "next_ticks", **late)) == 3


@pytest.mark.promise("P15")
def test_create_schedule_refuses_start_after_end_of_time_zone(
    connection: Connection, queue: str
) -> None:
    arguments = {
        "queue_name": queue, "schedule_name": "a", "cron": "@daily", "starts_at": END,
    }  # fmt: skip
    refused(connection, "RQ711", "create_schedule", time_zone="Europe/Berlin", **arguments)
    assert call_one(connection, "create_schedule", **arguments).next_run_at == END


@pytest.mark.pitfall("mysql 24")
@pytest.mark.promise("P15")
@pytest.mark.requires("databases")
def test_server_without_time_zone_tables_accepts_only_utc(
    without_zones: Connection, queue_name: str
) -> None:
    call(without_zones, "create_queue", queue_name=queue_name)
    arguments = {"queue_name": queue_name, "schedule_name": "a", "cron": "@daily"}
    text = refused(without_zones, "RQ711", "create_schedule", time_zone="Asia/Tokyo", **arguments)
    assert "Asia/Tokyo: load the server's time zone tables (mysql_tzinfo_to_sql)" in text
    assert call_one(without_zones, "create_schedule", **arguments).outcome == "created"


@pytest.mark.pitfall("mysql 24")
@pytest.mark.promise("P30", "P31")
def test_schedule_with_lost_time_zone_stays_due_with_error(
    connection: Connection, queue: str
) -> None:
    schedule(connection, queue, "lost", cron="* * * * *", interval_seconds=None)
    schedule(connection, queue, "other", body="other")
    queue_id = queue_id_of(connection, queue)
    change = (
        "update rowq.schedule set time_zone = %s where queue_id = %s and schedule_name = 'lost'"
    )
    connection.execute(change, ["Mars/Base", queue_id])
    call(connection, "maintain", queue_name=queue)
    assert [row.body for row in dequeue(connection, queue, 10)] == ["other"]
    (name, error, is_due), _ = shown(connection, queue)
    assert (name, is_due) == ("lost", True)
    assert error is not None
    assert "time_zone" in error
    connection.execute(change, ["Europe/Berlin", queue_id])
    call(connection, "maintain", queue_name=queue)
    assert len(dequeue(connection, queue, 10)) == 1
    assert shown(connection, queue)[0] == ("lost", None, False)


@pytest.mark.promise("P30")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_old_snapshot_does_not_run_tick_again(
    connection: Connection, connect: Connect, queue: str, level: str
) -> None:
    schedule(connection, queue)
    old = connect()
    old.execute(f"set transaction isolation level {level}")
    old.execute("start transaction with consistent snapshot")
    call(connection, "maintain", queue_name=queue)
    call(old, "maintain", queue_name=queue)
    old.commit()
    assert len(dequeue(connection, queue, 10)) == 1


@pytest.mark.promise("P06", "P17", "P30")
@pytest.mark.parametrize("kind", [{"overlap": False}, {"overlap": True}])
def test_producer_in_group_delays_no_tick_and_keeps_timeout(
    connection: Connection, connect: Connect, queue: str, kind: dict[str, Any]
) -> None:
    schedule(connection, queue, group_key="group", **kind)
    producer, leader = connect(), connect()
    producer.execute("begin")
    enqueue(producer, queue, "first", group_key="group")
    leader.execute("set session innodb_lock_wait_timeout = 17")
    call(leader, "maintain", queue_name=queue)
    assert shown(connection, queue) == [("often", None, False)]
    assert dequeue(connection, queue, 10) == []
    producer.rollback()
    tick(connection, queue)
    pass_seconds(connection, queue, 1)
    call(leader, "maintain", queue_name=queue)
    assert len(dequeue(connection, queue, 10)) == 1
    assert leader.execute("select @@session.innodb_lock_wait_timeout").fetchone() == (17,)


@pytest.mark.promise("P30")
def test_refused_tick_keeps_callers_transaction_and_other_ticks(
    connection: Connection, queue: str
) -> None:
    connection.execute("create temporary table own (a int)")
    schedule(connection, queue, "long", body="x" * 100)
    schedule(connection, queue, "other", body="other")
    call(connection, "alter_queue", queue_name=queue, max_body_length=50)
    connection.execute("begin")
    connection.execute("insert into own values (1)")
    call(connection, "maintain", queue_name=queue)
    connection.commit()
    assert connection.execute("select count(*) from own").fetchone() == (1,)
    assert [row.body for row in dequeue(connection, queue, 10)] == ["other"]
    connection.execute("drop temporary table own")
    (_, error, is_due), _ = shown(connection, queue)
    assert error is not None
    assert "max_body_length" in error
    assert not is_due


@pytest.mark.promise("P20", "P30")
@pytest.mark.parametrize("key", ["tick", "schedule"])
def test_tick_headers_keep_numbers_and_replace_duplicate_keys(
    connection: Connection, queue: str, key: str
) -> None:
    numbers = '"n": [1.50, 12345678901234567890123, 1e2], "empty": null'
    connection.execute(
        "call rowq.create_schedule(%s, 'often', null, 3600, null, null, null, null, %s,"
        " null, null, null, null, null, null, null, null)",
        [queue, f'{{"{key}": 1, {numbers}, "{key}": {{"a": 1}}}}'],
    ).close()
    call(connection, "run_schedule", queue_name=queue, schedule_name="often")
    ((text,),) = connection.execute(
        "select headers from rowq.message where queue_id = %s", [queue_id_of(connection, queue)]
    ).fetchall()
    assert not re.search(rf'"{key}": [^"]', text)
    if "mariadb" in connection.server_version.lower():
        assert "[1.50, 12345678901234567890123, 1e2]" in text
    assert '"empty": null' in text


@pytest.mark.promise("P13")
def test_statements_on_schedule_use_the_primary_key(
    connection: Connection, connect: Connect, queue: str
) -> None:
    for number in range(200):
        call(
            connection, "create_schedule", queue_name=queue, schedule_name=f"{number}",
            interval_seconds=7200,
        )  # fmt: skip
    schedule(connection, queue, overlap=False)
    session = connect()
    connection.execute("use rowq")

    def work() -> None:
        for _ in range(2):
            call(session, "maintain", queue_name=queue)
        asked = {"queue_name": queue, "schedule_name": "often"}
        call(session, "run_schedule", **asked)
        call(session, "alter_schedule", **asked, missed="all")
        call(session, "drop_schedule", queue_name=queue, schedule_name="0")

    found = [
        access
        for statement in run_by(connection, session, work)
        for access in accesses(connection, statement)
        if access.table == "schedule" and not access.statement.lstrip().startswith("insert")
    ]
    assert len(found) > 6
    for access in found:
        assert access.key == "PRIMARY", access
        assert access.type in {"const", "eq_ref", "ref", "range"}, access
        assert "filesort" not in access.extra, access
        assert "temporary" not in access.extra, access


@pytest.mark.promise("P13", "P19")
def test_maintain_skips_queues_without_due_schedules(
    connection: Connection, connect: Connect, queue: str
) -> None:
    call(
        connection, "create_schedule", queue_name=queue, schedule_name="often",
        interval_seconds=7200,
    )  # fmt: skip
    for _ in range(2):
        call(connection, "maintain", queue_name=queue)
    session = connect()
    connection.execute("use rowq")
    runs = [
        run_by(connection, session, lambda: call(session, "maintain", queue_name=queue))
        for _ in range(5)
    ]
    # A check that the machine slows down also reads its queue.
    reads = min(sum("rowq.schedule" in statement for statement in ran) for ran in runs)
    assert reads == 1
