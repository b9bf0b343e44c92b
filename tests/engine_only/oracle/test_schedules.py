"""Schedules on Oracle: its time zones, settings of sessions, who waits for whom, and plans."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import oracledb
import pytest

from tests.engine_only.oracle.plans import plans
from tests.engine_only.oracle.test_groups import doors
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

PATIENCE_MS = 5000
"""A call that takes longer waits for a lock: nothing here takes a tenth of it."""
CANNOT_SERIALIZE = 8177
LONG = "x" * 40_000
"""Longer than any varchar2, and than what a row keeps of a LOB."""
OF_QUEUE = "s.queue_id = (select q.queue_id from rowq_queue q where q.queue_name = %s)"
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
CRONS = ("30 2 * * *", "30 1 * * *", "*/20 * * * *")
CHANGES = ("2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31")
"""Days before the clocks of these zones are changed."""


def maintain(connection: Connection, queue: str) -> None:
    """Keep house, which must not wait for anybody."""
    connection.call_timeout = PATIENCE_MS
    assert call_one(connection, "maintain", queue_name=queue).elected


def make(connection: Connection, queue: str, **settings: object) -> None:
    """Create a schedule with a tick that is due since two seconds."""
    settings = {"schedule_name": "s", "interval_seconds": 3600.0, "body": "tick"} | settings
    call(connection, "create_schedule", queue_name=queue, **settings)
    let_be_due(connection, queue)


def let_be_due(connection: Connection, queue: str) -> None:
    """Let the next tick of every schedule of a queue be two seconds ago."""
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


def named(cron: str, local: datetime) -> bool:
    """Return whether a cron expression of CRONS names a local time."""
    if cron == CRONS[2]:
        return local.minute % 20 == 0
    return (local.hour, local.minute) == ((2, 30) if cron == CRONS[0] else (1, 30))


def by_the_clock(
    cron: str, clocks: ZoneInfo, after: datetime, before: datetime
) -> Iterator[datetime]:
    """Yield the ticks that somebody would see who looks at a clock each minute.

    What the clocks skip is left out, and what they show twice comes twice.
    """
    moment = after
    while (moment := moment + timedelta(minutes=1)) < before:
        if named(cron, moment.astimezone(clocks)):
            yield moment


@pytest.mark.pitfall("oracle 32")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
def test_ticks_follow_the_clocks_of_their_time_zone(
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
        # A local time that is given comes once a day: at its first moment, or where a gap ends.
        once = {tick.astimezone(clocks).date(): tick for tick in reversed(shown)}
        days = {tick.astimezone(clocks).date(): tick for tick in found}
        assert 2 <= len(days) == len(found) <= 4
        assert once.items() <= days.items()
        for date in days.keys() - once.keys():
            moments = (days[date] - timedelta(minutes=1), days[date])
            assert len({moment.astimezone(clocks).utcoffset() for moment in moments}) == 2


@pytest.mark.promise("P31")
def test_the_29th_of_february_comes_where_there_is_one(connection: Connection, queue: str) -> None:
    found = ticks(
        connection, cron="0 0 29 2 *", after=datetime(2096, 1, 1, tzinfo=UTC), max_ticks=2
    )
    assert found == [datetime(year, 2, 29, tzinfo=UTC) for year in (2096, 2104)]
    never = {"queue_name": queue, "schedule_name": "s", "cron": "0 0 31 2 *"}
    assert "no tick" in refused(connection, "RQ711", "create_schedule", **never)


@pytest.mark.promise("P31")
def test_intervals_end_with_the_last_year_of_the_server(connection: Connection) -> None:
    found = ticks(connection, interval_seconds=315_360_000.0, max_ticks=1000)
    assert 700 < len(found) < 1000
    assert found[-1].year > 9980


@pytest.mark.pitfall("oracle 32")
@pytest.mark.promise("P31")
@pytest.mark.parametrize("setting", STRANGE)
def test_ticks_are_the_same_whatever_the_session_has_set(
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
def test_a_time_zone_is_the_name_of_a_region_and_nothing_else(
    connection: Connection, zone: str
) -> None:
    text = refused(connection, "RQ711", "next_ticks", cron="@daily", time_zone=zone)
    assert "time_zone must be a name" in text


@pytest.mark.pitfall("oracle 33")
@pytest.mark.promise("P30")
def test_a_tick_waits_for_nobody_who_is_ending_the_message_of_an_earlier_one(
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
def test_a_tick_that_makes_no_message_leaves_the_earlier_one_to_its_worker(
    connection: Connection, connect: Connect, queue: str
) -> None:
    keeper, worker = connect(), connect()
    worker.call_timeout = PATIENCE_MS
    make(connection, queue, overlap=False)
    maintain(connection, queue)
    claim = dequeue_one(worker, queue).claim_id
    let_be_due(connection, queue)
    with transaction(keeper):
        maintain(keeper, queue)
        assert "has not ended" in schedule(keeper, queue).last_error
        call(worker, "complete", queue_name=queue, claim_id=claim)


@pytest.mark.pitfall("oracle 33")
@pytest.mark.promise("P30")
@pytest.mark.parametrize("settings", [{"group_key": "a"}, {"overlap": False}])
def test_a_tick_is_left_for_later_where_somebody_holds_its_door(
    connection: Connection, connect: Connect, queue: str, settings: dict[str, object]
) -> None:
    holder = connect()
    make(connection, queue, **settings)
    with rolled_back(holder):
        assert doors(holder, queue) == 64
        maintain(connection, queue)
        assert dequeue(connection, queue) == []
        assert schedule(connection, queue).last_error is None
    maintain(connection, queue)
    assert bodies(dequeue(connection, queue, 10)) == ["tick"]


@pytest.mark.promise("P06", "P30")
def test_a_tick_that_needs_no_door_does_not_look_at_one(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder = connect()
    make(connection, queue)
    with rolled_back(holder):
        doors(holder, queue)
        maintain(connection, queue)
        assert bodies(dequeue(connection, queue, 10)) == ["tick"]


@pytest.mark.promise("P30")
def test_the_error_of_a_tick_begins_with_the_contract_s_number(
    connection: Connection, queue: str
) -> None:
    make(connection, queue, body="x" * 100)
    call(connection, "alter_queue", queue_name=queue, max_body_length=10)
    maintain(connection, queue)
    found = schedule(connection, queue).last_error
    assert found == (
        "RQ711 invalid_argument: body is 100 long, and the queue takes 10: max_body_length"
    )


@pytest.mark.promise("P30")
def test_a_serializable_maintain_runs_no_tick_that_was_run_since_it_began(
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
        # The other session may have moved a floor, too.
        assert number_of(error) == CANNOT_SERIALIZE  # noqa: PT017
    dialect.commit(connection)
    assert len(dequeue(other, queue, 10)) == 1


@pytest.mark.promise("P20")
def test_long_texts_that_are_not_changed_stay_as_they_are(
    connection: Connection, queue: str
) -> None:
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
def test_maintain_looks_for_due_schedules_by_a_range_of_their_key(
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
