"""Schedules on Oracle: time zones, session settings, locks and plans."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import oracledb
import pytest

from tests.engine_only.oracle.plans import plans
from tests.engine_only.oracle.test_groups import lock_buckets
from tests.engine_only.oracle.test_settings import STRANGE
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import number_of
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    dequeue,
    dequeue_one,
    refused,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

TIMEOUT_MS = 5000
"""A longer call waits for a lock: without locks, none takes a tenth of it."""
CANNOT_SERIALIZE = 8177
LONG = "x" * 40_000
"""Longer than any varchar2, and than the inline part of a LOB."""
OF_QUEUE = "s.queue_id = (select q.queue_id from rowq_queue q where q.queue_name = %s)"
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
CRONS = ("30 2 * * *", "30 1 * * *", "*/20 * * * *")
CHANGES = ("2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31")
"""Days before an offset change in these zones."""


def maintain(connection: Connection, queue: str) -> None:
    """Call maintain, which must not wait for a lock."""
    connection.call_timeout = TIMEOUT_MS
    assert call_one(connection, "maintain", queue_name=queue).elected


def make(connection: Connection, queue: str, **settings: object) -> None:
    """Create a schedule with a tick due 2 seconds ago."""
    settings = {"schedule_name": "s", "interval_seconds": 3600.0, "body": "tick"} | settings
    call(connection, "create_schedule", queue_name=queue, **settings)
    let_be_due(connection, queue)


def let_be_due(connection: Connection, queue: str) -> None:
    """Make every schedule of a queue due 2 seconds ago."""
    statement = (
        "update rowq_schedule s"
        " set s.next_run_at = sys_extract_utc(systimestamp) - numtodsinterval(2, 'second')"
        f" where {OF_QUEUE}"
    )
    dialect_of(connection).execute(connection, statement, [queue])


def schedule(connection: Connection, queue: str) -> Row:
    return call_one(connection, "list_schedules", queue_name=queue)


def ticks(connection: Connection, **times: object) -> list[datetime]:
    return [row.tick for row in call(connection, "next_ticks", **times)]


def matches(cron: str, local: datetime) -> bool:
    """Return whether a local time matches an expression of CRONS."""
    if cron == CRONS[2]:
        return local.minute % 20 == 0
    return (local.hour, local.minute) == ((2, 30) if cron == CRONS[0] else (1, 30))


def by_the_clock(
    cron: str, clocks: ZoneInfo, after: datetime, before: datetime
) -> Iterator[datetime]:
    """Yield the ticks found by checking every minute: skipped times none, repeated ones twice."""
    time = after
    while (time := time + timedelta(minutes=1)) < before:
        if matches(cron, time.astimezone(clocks)):
            yield time


@pytest.mark.pitfall("oracle 32")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
def test_ticks_follow_offset_changes_of_time_zone(
    connection: Connection, zone: str, cron: str
) -> None:
    clocks = ZoneInfo(zone)
    for day in CHANGES:
        after = datetime.fromisoformat(f"{day}T12:00:00+00:00")
        before = after + timedelta(days=3)
        times = {"cron": cron, "time_zone": zone, "after": after, "max_ticks": 250}
        found = [tick for tick in ticks(connection, **times) if tick < before]
        shown = list(by_the_clock(cron, clocks, after, before))
        if cron == CRONS[2]:
            assert found == shown
            continue
        # A fixed local time fires once a day: at its first occurrence, or at the end of a gap.
        once = {tick.astimezone(clocks).date(): tick for tick in reversed(shown)}
        days = {tick.astimezone(clocks).date(): tick for tick in found}
        assert 2 <= len(days) == len(found) <= 4
        assert once.items() <= days.items()
        for date in days.keys() - once.keys():
            both = (days[date] - timedelta(minutes=1), days[date])
            assert len({time.astimezone(clocks).utcoffset() for time in both}) == 2


@pytest.mark.pitfall("oracle 32")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("setting", STRANGE)
def test_session_settings_do_not_change_ticks_or_headers(
    connect: Connect, queue: str, setting: str
) -> None:
    plain, strange = connect(), connect()
    for change in STRANGE[setting]:
        dialect_of(strange).execute(strange, f"alter session set {change}")
    after = datetime(2026, 3, 27, 10, 30, tzinfo=UTC)
    for cron in ("0 9 * JAN-Apr mon,FRI", "@weekly", "*/7 1,2 28-31 * *", "0 0 1 * 7"):
        times = {"cron": cron, "time_zone": "Europe/Berlin", "after": after}
        assert ticks(strange, **times) == ticks(plain, **times)
    headers = {"pi": 3.25, "text": "\N{EURO SIGN} \\ }"}
    make(strange, queue, headers=headers, schedule_name='a "name" \\')
    due = schedule(plain, queue).next_run_at
    maintain(strange, queue)
    row = dequeue_one(plain, queue)
    assert row.headers.pop("tick") == due.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert row.headers.pop("schedule") == 'a "name" \\'
    assert row.headers == headers
    for cron in (
        "daily",
        "@Daily ",
        "1\N{SUPERSCRIPT TWO} * * * *",
        "0 0 * * m\N{COMBINING TILDE}n",
    ):
        refused(strange, "RQ711", "next_ticks", cron=cron)


@pytest.mark.pitfall("oracle 32")
@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "zone",
    [
        "+02:00", "-11:30", "Europe/Berlin CEST", "Europe/Nowhere", "SESSIONTIMEZONE",
        "DBTIMEZONE", "x" * 65, "Europe/Berlin'", "\N{EURO SIGN}",
    ],
)  # fmt: skip
def test_next_ticks_accepts_only_region_names(connection: Connection, zone: str) -> None:
    text = refused(connection, "RQ711", "next_ticks", cron="@daily", time_zone=zone)
    assert "time_zone must be UTC or a name" in text


@pytest.mark.pitfall("oracle 33")
@pytest.mark.promise("P30")
def test_tick_does_not_wait_for_open_complete(
    connection: Connection, connect: Connect, queue: str
) -> None:
    worker = connect()
    make(connection, queue, overlap=False)
    maintain(connection, queue)
    let_be_due(connection, queue)
    claim = dequeue_one(worker, queue).claim_id
    with transaction(worker):
        call(worker, "complete", queue_name=queue, claim_id=claim)
        maintain(connection, queue)
        assert schedule(connection, queue).last_error is None
    maintain(connection, queue)
    assert bodies(dequeue(connection, queue, 10)) == ["tick"]
    let_be_due(connection, queue)
    maintain(connection, queue)
    assert "has not ended" in schedule(connection, queue).last_error
    assert dequeue(connection, queue) == []


@pytest.mark.promise("P30")
def test_skipped_tick_does_not_block_complete(
    connection: Connection, connect: Connect, queue: str
) -> None:
    leader, worker = connect(), connect()
    worker.call_timeout = TIMEOUT_MS
    make(connection, queue, overlap=False)
    maintain(connection, queue)
    claim = dequeue_one(worker, queue).claim_id
    let_be_due(connection, queue)
    with transaction(leader):
        maintain(leader, queue)
        assert "has not ended" in schedule(leader, queue).last_error
        call(worker, "complete", queue_name=queue, claim_id=claim)


@pytest.mark.pitfall("oracle 33")
@pytest.mark.promise("P30")
@pytest.mark.parametrize("settings", [{"group_key": "a"}, {"overlap": False}])
def test_tick_is_left_for_later_if_bucket_is_locked(
    connection: Connection, connect: Connect, queue: str, settings: dict[str, object]
) -> None:
    holder = connect()
    make(connection, queue, **settings)
    with rolled_back(holder):
        assert lock_buckets(holder, queue) == 64
        maintain(connection, queue)
        assert dequeue(connection, queue) == []
        assert schedule(connection, queue).last_error is None
    maintain(connection, queue)
    assert bodies(dequeue(connection, queue, 10)) == ["tick"]


@pytest.mark.promise("P06", "P30")
def test_tick_without_group_ignores_locked_buckets(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder = connect()
    make(connection, queue)
    with rolled_back(holder):
        lock_buckets(holder, queue)
        maintain(connection, queue)
        assert bodies(dequeue(connection, queue, 10)) == ["tick"]


@pytest.mark.promise("P30")
def test_last_error_begins_with_contract_number(connection: Connection, queue: str) -> None:
    make(connection, queue, body="x" * 100)
    call(connection, "alter_queue", queue_name=queue, max_body_length=10)
    maintain(connection, queue)
    found = schedule(connection, queue).last_error
    assert found == (
        "RQ711 invalid_argument: body must be at most 10 characters (max_body_length), got 100"
    )


@pytest.mark.promise("P30")
def test_serializable_maintain_does_not_run_tick_again(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other, dialect = connect(), dialect_of(connection)
    make(connection, queue)
    dialect.begin(connection, "serializable")
    dialect.execute(connection, "select count(*) from rowq_queue")
    maintain(other, queue)
    try:
        maintain(connection, queue)
    except oracledb.DatabaseError as error:
        # The other session may also have moved a floor.
        assert number_of(error) == CANNOT_SERIALIZE  # noqa: PT017
    dialect.commit(connection)
    assert len(dequeue(other, queue, 10)) == 1


@pytest.mark.promise("P20")
def test_alter_schedule_keeps_unchanged_long_texts(connection: Connection, queue: str) -> None:
    headers = {"long": LONG, "number": 1.25}
    make(connection, queue, body=LONG, headers=headers)
    call(connection, "alter_schedule", queue_name=queue, schedule_name="s", priority=3)
    call(connection, "run_schedule", queue_name=queue, schedule_name="s")
    row = dequeue_one(connection, queue)
    assert (row.body, row.priority) == (LONG, 3)
    assert {name: row.headers[name] for name in headers} == headers
    call(connection, "alter_schedule", queue_name=queue, schedule_name="s", body="")
    call(connection, "run_schedule", queue_name=queue, schedule_name="s")
    assert dequeue_one(connection, queue).body == ""


@pytest.mark.promise("P13")
def test_maintain_finds_due_schedules_by_key_range(
    server: OracleServer, connection: Connection, queue: str
) -> None:
    make(connection, queue)
    maintain(connection, queue)
    words = ("s.schedule_key from rowq_schedule s", "s.next_run_at <=")
    found = [plan for plan in plans(server, connection) if all(word in plan.text for word in words)]
    assert len(found) == 2
    for plan in found:
        assert "SORT" not in plan.operations, plan.shown
        scans = [step for step in plan.steps if step.operation == "INDEX"]
        assert {step.table for step in scans} == {"ROWQ_SCHEDULE_PK"}, plan.shown
        assert {step.options for step in scans} <= {"RANGE SCAN", "UNIQUE SCAN"}, plan.shown
