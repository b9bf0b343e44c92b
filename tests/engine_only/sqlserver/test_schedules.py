"""Schedules on SQL Server: time zones, locks and plans."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic
from zoneinfo import ZoneInfo

import pytest

from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, tables
from tests.engines.base import Connection
from tests.helpers.calls import Row, bodies, call, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.requires("genuine")

YOUNG = {
    "Qyzylorda Standard Time", "South Sudan Standard Time", "Volgograd Standard Time",
    "Yukon Standard Time",
}  # fmt: skip
"""Zones of 2019 or later, which an older Windows lacks."""

UNKNOWN = """
    select distinct t.windows_name from rowq.time_zone t
    where not exists (select 1 from sys.time_zone_info z
        where z.name collate Latin1_General_100_BIN2 = t.windows_name)
    """
CHANGING = (
    "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles",
    "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Auckland", "America/Santiago",
    "Asia/Kolkata", "Asia/Tokyo",
)  # fmt: skip
KEYS = """
    select count(*) from sys.dm_tran_locks l
    where l.request_session_id = @@spid and l.resource_type = 'KEY' and l.request_mode = 'X'
        and l.resource_associated_entity_id in (
            select p.hobt_id from sys.partitions p where p.object_id = object_id(N'rowq.schedule'))
    """
DAY = timedelta(days=1)


def schedule(connection: Connection, queue: str, *names: str, **settings: object) -> None:
    """Create schedules with a tick every 1000 seconds; the body is the name."""
    times = {} if "cron" in settings else {"interval_seconds": 1000}
    for name in names:
        call(
            connection, "create_schedule",
            queue_name=queue, schedule_name=name, body=name, **times, **settings,
        )  # fmt: skip


def make_due(connection: Connection, queue: str, *names: str, **settings: object) -> None:
    """Create schedules with exactly one due tick."""
    schedule(connection, queue, *names, **settings)
    pass_seconds(connection, queue, 1001)


def listed(connection: Connection, queue: str) -> dict[str, Row]:
    """Return the schedules of a queue by their names."""
    rows = call(connection, "list_schedules", queue_name=queue)
    return {row.schedule_name: row for row in rows}


def ticks(connection: Connection, **times: object) -> list[datetime]:
    """Return what next_ticks returns."""
    return [row.tick for row in call(connection, "next_ticks", **times)]


@contextmanager
def language(connection: Connection, name: str, first: int) -> Iterator[None]:
    """Set a session's language and first day of the week."""
    dialect_of(connection).execute(connection, f"set language {name}")
    dialect_of(connection).execute(connection, f"set datefirst {first}")
    yield
    dialect_of(connection).execute(connection, "set language us_english")


@pytest.mark.pitfall("sqlserver 28")
@pytest.mark.promise("P31")
def test_server_has_the_windows_time_zones_of_iana_names(connection: Connection) -> None:
    found = dialect_of(connection).execute(connection, UNKNOWN).fetchall()
    assert {name for (name,) in found} <= YOUNG


@pytest.mark.pitfall("sqlserver 28")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("zone", CHANGING)
def test_windows_time_zone_agrees_with_iana(connection: Connection, zone: str) -> None:
    """At noon on each of 800 days; tests/contract covers gaps."""
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found = ticks(connection, cron="0 12 * * *", time_zone=zone, after=start, max_ticks=800)
    clocks = ZoneInfo(zone)
    assert len(found) == 800
    assert {tick.astimezone(clocks).hour for tick in found} == {12}
    days = [tick.astimezone(clocks).date() for tick in found]
    assert all(later - day == DAY for day, later in pairwise(days))


@pytest.mark.promise("P31")
@pytest.mark.parametrize(
    ("iana", "windows"),
    [
        ("Europe/Berlin", "W. Europe Standard Time"),
        ("America/New_York", "Eastern Standard Time"),
        ("Etc/UTC", "UTC"),
    ],
)
def test_iana_and_windows_names_give_the_same_ticks(
    connection: Connection, iana: str, windows: str
) -> None:
    times = {"cron": "*/30 1-3 * mar,apr,oct,nov sun", "max_ticks": 500}
    after = datetime(2026, 1, 1, tzinfo=UTC)
    by_iana = ticks(connection, time_zone=iana, after=after, **times)
    assert by_iana == ticks(connection, time_zone=windows, after=after, **times)


@pytest.mark.pitfall("sqlserver 28")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("first", range(1, 8))
def test_weekday_ignores_datefirst_and_language(connection: Connection, first: int) -> None:
    after = datetime(2026, 6, 3, tzinfo=UTC)
    with language(connection, "Deutsch", first):
        found = ticks(connection, cron="0 0 * jun sun", after=after, max_ticks=2)
    assert found == [datetime(2026, 6, 7, tzinfo=UTC), datetime(2026, 6, 14, tzinfo=UTC)]


@pytest.mark.pitfall("sqlserver 30")
@pytest.mark.promise("P30")
def test_due_schedules_are_found_by_seeks(connection: Connection, queue: str) -> None:
    plans: list[Plan] = []
    for count in (3, 300):
        make_due(connection, queue, *(f"due {count} {number}" for number in range(count)))
        schedule(connection, queue, *(f"later {count} {number}" for number in range(count)))
        plans += called(connection, "Maintain", queue_name=queue)
        assert len(dequeue(connection, queue, 1000)) >= count
    about = [plan for plan in plans if "schedule" in tables([plan])]
    assert about
    assert not faults(about, small=STEPS | {"time_zone"})
    seeks = {
        access.seek
        for plan in about
        for access in plan.accesses
        if access.table == "schedule" and access.seek
    }
    assert seeks <= {("queue_id",), ("queue_id", "schedule_key")}


@pytest.mark.pitfall("sqlserver 29")
@pytest.mark.promise("P30")
def test_maintain_in_callers_transaction_locks_only_due_rows(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    make_due(connection, queue, "b")
    schedule(connection, queue, "a", "c")
    with rolled_back(connection):
        call(connection, "maintain", queue_name=queue)
        assert value(connection, KEYS) == 1
        for name in "ac":
            call(other, "alter_schedule", queue_name=queue, schedule_name=name, body="new")
    call(other, "maintain", queue_name=queue)
    assert bodies(dequeue(other, queue, 10)) == ["b"]


@pytest.mark.pitfall("sqlserver 29")
@pytest.mark.promise("P30")
def test_maintain_in_callers_transaction_skips_waiting_ticks(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = connect()
    make_due(connection, queue, "plain")
    make_due(connection, queue, "group_waiting", group_key="g")
    make_due(connection, queue, "alone", overlap=False)
    with transaction(connection):
        call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue, 10)) == ["plain"]
    call(other, "maintain", queue_name=queue)
    assert sorted(map(str, bodies(dequeue(other, queue, 10)))) == ["alone", "group_waiting"]


@pytest.mark.pitfall("sqlserver 29")
@pytest.mark.promise("P30")
@pytest.mark.parametrize("settings", [{"group_key": "g"}, {"group_key": "g", "overlap": False}])
def test_waiting_tick_is_left_to_next_call_without_error(
    connection: Connection, connect: Connect, queue: str, settings: dict[str, object]
) -> None:
    producer = connect()
    make_due(connection, queue, "held", **settings)
    schedule(connection, queue, "other")
    pass_seconds(connection, queue, 1001)
    with rolled_back(producer):
        enqueue(producer, queue, "first", group_key="g")
        call(connection, "maintain", queue_name=queue)
        assert bodies(dequeue(connection, queue, 10)) == ["other"]
        assert listed(connection, queue)["held"].last_error is None
        assert value(connection, "select @@lock_timeout") == -1
        assert value(connection, "select @@trancount") == 0
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue, 10)) == ["held"]


@pytest.mark.pitfall("sqlserver 29")
@pytest.mark.promise("P30")
def test_maintain_waits_for_producer_once(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer = connect()
    names = [f"held {number}" for number in range(100)]
    make_due(connection, queue, *names, group_key="g")
    make_due(connection, queue, "plain")
    with rolled_back(producer):
        enqueue(producer, queue, "first", group_key="g")
        began = monotonic()
        call(connection, "maintain", queue_name=queue)
        assert monotonic() - began < 1
        assert bodies(dequeue(connection, queue, 10)) == ["plain"]
    call(connection, "maintain", queue_name=queue)
    assert listed(connection, queue)["held 99"].last_message_id is not None


@pytest.mark.promise("P15", "P30")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_refused_tick_keeps_other_ticks_and_callers_transaction(
    connection: Connection, queue: str, in_transaction: bool
) -> None:
    make_due(connection, queue, "a", "long", "z")
    call(connection, "alter_queue", queue_name=queue, max_body_length=3)
    if in_transaction:
        with transaction(connection):
            call(connection, "maintain", queue_name=queue)
            assert value(connection, "select xact_state()") == 1
    else:
        call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue, 10)) == ["a", "z"]
    row = listed(connection, queue)["long"]
    assert row.last_error.startswith("RQ711 invalid_argument: body is 4 long")
    assert row.next_run_at > datetime.now(UTC)


@pytest.mark.promise("P30")
def test_open_create_or_alter_schedule_blocks_no_other(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    make_due(connection, queue, "b", "d")
    with rolled_back(connection):
        schedule(connection, queue, "a", "c", "e")
        call(connection, "alter_schedule", queue_name=queue, schedule_name="d", body="new")
        schedule(other, queue, "aa", "cc", "ee")
        call(other, "maintain", queue_name=queue)
        assert bodies(dequeue(other, queue, 10)) == ["b"]
    call(other, "maintain", queue_name=queue)
    assert bodies(dequeue(other, queue, 10)) == ["d"]
