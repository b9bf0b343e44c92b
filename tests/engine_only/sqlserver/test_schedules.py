"""What only a server can show of schedules: names and rules of time zones, locks and plans."""

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
"""Zones that Windows has had since 2019 or later: an older server may not have them."""

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
    """Create schedules with a tick every thousand seconds; the body is the name."""
    times = {} if "cron" in settings else {"interval_seconds": 1000}
    for name in names:
        call(
            connection, "create_schedule",
            queue_name=queue, schedule_name=name, body=name, **times, **settings,
        )  # fmt: skip


def make_due(connection: Connection, queue: str, *names: str, **settings: object) -> None:
    """Create schedules that are due, and have missed no other tick."""
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
    """Let a session speak another language and begin its week on another day."""
    dialect_of(connection).execute(connection, f"set language {name}")
    dialect_of(connection).execute(connection, f"set datefirst {first}")
    yield
    dialect_of(connection).execute(connection, "set language us_english")


@pytest.mark.pitfall("sqlserver 28")
@pytest.mark.promise("P31")
def test_the_server_knows_the_time_zones_that_iana_names_stand_for(connection: Connection) -> None:
    found = dialect_of(connection).execute(connection, UNKNOWN).fetchall()
    assert {name for (name,) in found} <= YOUNG


@pytest.mark.pitfall("sqlserver 28")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("zone", CHANGING)
def test_the_server_s_clocks_are_those_of_the_iana_names(connection: Connection, zone: str) -> None:
    """At noon on each of 800 days; what becomes of a time in a gap is the contract's test."""
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
def test_a_time_zone_has_two_names(connection: Connection, iana: str, windows: str) -> None:
    times = {"cron": "*/30 1-3 * mar,apr,oct,nov sun", "max_ticks": 500}
    after = datetime(2026, 1, 1, tzinfo=UTC)
    by_iana = ticks(connection, time_zone=iana, after=after, **times)
    assert by_iana == ticks(connection, time_zone=windows, after=after, **times)


@pytest.mark.promise("P31")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # Clocks go forward at 01:00 UTC on 29 March 2026, and back at 01:00 UTC on 25 October.
        ("30 2 * * *", "Europe/Berlin", (3, 28, 12), [(3, 29, 1, 0), (3, 30, 0, 30)]),
        ("30 2 * * *", "Europe/Berlin", (10, 24, 12), [(10, 25, 0, 30), (10, 26, 1, 30)]),
        ("30 * * * *", "Europe/Berlin", (10, 25, 0), [(10, 25, 0, 30), (10, 25, 1, 30)]),
        # Half an hour: forward at 15:30 UTC on 3 October 2026, and back at 15:00 UTC on 4 April.
        ("15 2 * * *", "Australia/Lord_Howe", (10, 3, 12), [(10, 3, 15, 30), (10, 4, 15, 15)]),
        ("45 1 * * *", "Australia/Lord_Howe", (4, 4, 12), [(4, 4, 14, 45), (4, 5, 15, 15)]),
    ],
)
def test_a_change_of_clocks_neither_loses_a_tick_nor_repeats_one(
    connection: Connection,
    cron: str,
    zone: str,
    after: tuple[int, int, int],
    expected: list[tuple[int, int, int, int]],
) -> None:
    since = datetime(2026, *after, tzinfo=UTC)
    found = ticks(connection, cron=cron, time_zone=zone, after=since, max_ticks=2)
    assert found == [datetime(2026, *moment, tzinfo=UTC) for moment in expected]


@pytest.mark.pitfall("sqlserver 28")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("first", range(1, 8))
def test_a_weekday_is_the_same_whatever_the_session_s_week_and_language(
    connection: Connection, first: int
) -> None:
    after = datetime(2026, 6, 3, tzinfo=UTC)
    with language(connection, "Deutsch", first):
        found = ticks(connection, cron="0 0 * jun sun", after=after, max_ticks=2)
    assert found == [datetime(2026, 6, 7, tzinfo=UTC), datetime(2026, 6, 14, tzinfo=UTC)]


@pytest.mark.pitfall("sqlserver 30")
@pytest.mark.promise("P30")
def test_due_schedules_are_found_by_seeks_in_the_order_of_their_key(
    connection: Connection, queue: str
) -> None:
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
def test_a_call_in_the_caller_s_transaction_locks_only_what_it_runs(
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
def test_a_call_in_the_caller_s_transaction_leaves_to_others_what_may_wait(
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
def test_a_tick_that_has_to_wait_is_left_for_the_next_call_without_a_note(
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
def test_a_call_waits_for_a_producer_once(
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
@pytest.mark.parametrize("is_guest", [False, True])
def test_a_refused_tick_is_noted_and_spoils_neither_others_nor_the_caller_s_transaction(
    connection: Connection, queue: str, is_guest: bool
) -> None:
    make_due(connection, queue, "a", "long", "z")
    call(connection, "alter_queue", queue_name=queue, max_body_length=3)
    if is_guest:
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
def test_a_schedule_that_is_being_created_or_altered_holds_up_no_other(
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
