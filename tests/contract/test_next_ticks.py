"""next_ticks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.dice import IS_GIVEN, limit, times
from tests.engines.base import Connection
from tests.helpers import cron as reference
from tests.helpers.calls import call, refused
from tests.helpers.together import together

# Not Australia/Lord_Howe: cronsim loses half an hour there when the offset changes.
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Adelaide")

# Cron, zone, after, and the ticks that follow, all in UTC.
CASES = [
    ("* * * * *", "UTC", "2026-01-01T00:00", ["2026-01-01T00:01", "2026-01-01T00:02"]),
    ("*/15 * * * *", "UTC", "2026-01-01T00:15", ["2026-01-01T00:30", "2026-01-01T00:45"]),
    ("0 3 * * mon-fri", "UTC", "2026-01-02T03:00", ["2026-01-05T03:00", "2026-01-06T03:00"]),
    ("0 3 * * 1-5", "UTC", "2026-01-02T02:59", ["2026-01-02T03:00", "2026-01-05T03:00"]),
    ("0 0 * * 0", "UTC", "2026-01-01T00:00", ["2026-01-04T00:00", "2026-01-11T00:00"]),
    ("0 0 * * 7", "UTC", "2026-01-01T00:00", ["2026-01-04T00:00", "2026-01-11T00:00"]),
    ("0 0 * * sun,wed", "UTC", "2026-01-01T00:00", ["2026-01-04T00:00", "2026-01-07T00:00"]),
    ("0 0 * * fri-7", "UTC", "2026-01-01T00:00", ["2026-01-02T00:00", "2026-01-03T00:00"]),
    ("0 0 31 * *", "UTC", "2026-01-31T00:00", ["2026-03-31T00:00", "2026-05-31T00:00"]),
    ("0 0 29 2 *", "UTC", "2025-01-01T00:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
    ("0 0 29 2 *", "UTC", "2096-02-29T00:00", ["2104-02-29T00:00"]),
    ("0 0 1 jan *", "UTC", "2026-01-01T00:00", ["2027-01-01T00:00", "2028-01-01T00:00"]),
    ("0 0 1 JAN *", "UTC", "2026-01-01T00:00", ["2027-01-01T00:00"]),
    ("0 0 1,15 * *", "UTC", "2026-01-01T00:00", ["2026-01-15T00:00", "2026-02-01T00:00"]),
    ("30 4 1,15 * 5", "UTC", "2026-01-01T05:00", ["2026-01-02T04:30", "2026-01-09T04:30"]),
    ("0 0 13 * fri", "UTC", "2026-02-01T00:00", ["2026-02-06T00:00", "2026-02-13T00:00"]),
    ("0 0 */2 * mon", "UTC", "2026-01-01T00:00", ["2026-01-05T00:00", "2026-01-19T00:00"]),
    ("5-20/5 8-9 * * *", "UTC", "2026-01-01T08:15", ["2026-01-01T08:20", "2026-01-01T09:05"]),
    ("50/5 8 * * *", "UTC", "2026-01-01T08:00", ["2026-01-01T08:50", "2026-01-01T08:55"]),
    ("59 23 31 12 *", "UTC", "2026-12-31T23:59", ["2027-12-31T23:59"]),
    ("@hourly", "UTC", "2026-01-01T00:00", ["2026-01-01T01:00", "2026-01-01T02:00"]),
    ("@daily", "UTC", "2026-01-01T00:00", ["2026-01-02T00:00"]),
    ("@midnight", "UTC", "2026-01-01T00:00", ["2026-01-02T00:00"]),
    ("@weekly", "UTC", "2026-01-01T00:00", ["2026-01-04T00:00"]),
    ("@monthly", "UTC", "2026-01-01T00:00", ["2026-02-01T00:00"]),
    ("@yearly", "UTC", "2026-01-01T00:00", ["2027-01-01T00:00"]),
    ("@annually", "UTC", "2026-01-01T00:00", ["2027-01-01T00:00"]),
    (" 0  0 1 *\t* ", "UTC", "2026-01-01T00:00", ["2026-02-01T00:00"]),
    ("0 0 * * *", "UTC", "2026-01-01T23:59:59.999999", ["2026-01-02T00:00"]),
    ("0 0 * * *", "UTC", "2026-01-01T00:00:00.000001", ["2026-01-02T00:00"]),
    # Europe/Berlin skips 02:00 to 03:00 on 29 March 2026, and repeats it on 25 October.
    ("0 3 * * *", "Europe/Berlin", "2026-01-01T00:00", ["2026-01-01T02:00", "2026-01-02T02:00"]),
    ("0 3 * * *", "Europe/Berlin", "2026-03-28T02:00", ["2026-03-29T01:00", "2026-03-30T01:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T02:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T02:00", ["2026-03-29T01:00", "2026-03-30T00:00"]),
    ("30 2,3 * * *", "Europe/Berlin", "2026-03-28T03:00", ["2026-03-29T01:00", "2026-03-29T01:30"]),
    ("0 * * * *", "Europe/Berlin", "2026-03-28T23:30", ["2026-03-29T00:00", "2026-03-29T01:00"]),
    ("*/30 2 * * *", "Europe/Berlin", "2026-03-28T02:00", ["2026-03-30T00:00", "2026-03-30T00:30"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ("0 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T00:00", "2026-10-26T01:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45", ["2026-10-26T01:30"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:15", ["2026-10-26T01:30"]),
    ("0 * * * *", "Europe/Berlin", "2026-10-24T23:30",
     ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"]),
    ("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00",
     ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30",
      "2026-10-26T01:00"]),
    ("*/30 2 25 10 *", "Europe/Berlin", "2026-10-25T00:45",
     ["2026-10-25T01:00", "2026-10-25T01:30", "2027-10-25T00:00"]),
    ("15 * 25 10 *", "Europe/Berlin", "2026-10-25T00:20", ["2026-10-25T01:15", "2026-10-25T02:15"]),
    ("0 12 29 3 *", "Europe/Berlin", "2026-01-01T00:00", ["2026-03-29T10:00", "2027-03-29T10:00"]),
    ("59 1 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T00:59", "2026-03-29T23:59"]),
    # America/New_York skips 02:00 to 03:00 on 8 March 2026, and repeats 01:00 on 1 November.
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00",
     ["2026-03-08T07:00", "2026-03-09T06:30"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00",
     ["2026-11-01T05:30", "2026-11-02T06:30"]),
    ("30 1 * * *", "America/New_York", "2026-11-01T06:00", ["2026-11-02T06:30"]),
    ("0 0 * * *", "America/New_York", "2026-10-31T12:00", ["2026-11-01T04:00", "2026-11-02T05:00"]),
    ("*/20 1 * * *", "America/New_York", "2026-11-01T05:30",
     ["2026-11-01T05:40", "2026-11-01T06:00", "2026-11-01T06:20", "2026-11-01T06:40",
      "2026-11-02T06:00"]),
    # Australia/Lord_Howe goes back half an hour at 02:00 on 5 April 2026, and forward on 4 October.
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00",
     ["2026-04-04T14:45", "2026-04-05T15:15"]),
    ("*/15 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:20",
     ["2026-04-04T14:30", "2026-04-04T14:45", "2026-04-04T15:00", "2026-04-04T15:15",
      "2026-04-05T14:30"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00",
     ["2026-10-03T15:30", "2026-10-04T15:15"]),
    ("0 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00",
     ["2026-10-03T15:30", "2026-10-04T15:00"]),
    ("45 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00",
     ["2026-10-03T15:45", "2026-10-04T15:45"]),
    ("0 0 * * *", "Asia/Kolkata", "2026-01-01T00:00", ["2026-01-01T18:30", "2026-01-02T18:30"]),
    ("0 9 * * 1", "Asia/Kolkata", "2026-01-01T00:00", ["2026-01-05T03:30", "2026-01-12T03:30"]),
]  # fmt: skip


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(connection: Connection, **arguments: Any) -> list[datetime]:
    return [row.tick for row in call(connection, "next_ticks", **arguments)]


@pytest.mark.promise("P31")
@together(("cron", "zone", "after", "expected"), CASES)
def test_next_ticks_returns_ticks_of_cron(
    connection: Connection, cron: str, zone: str, after: str, expected: list[str]
) -> None:
    found = ticks(connection, cron=cron, time_zone=zone, after=utc(after), max_ticks=len(expected))
    assert found == [utc(text) for text in expected]


@together(("cron", "zone", "after", "expected"), CASES)
def test_cases_of_cron_agree_with_cronsim(
    cron: str, zone: str, after: str, expected: list[str]
) -> None:
    found = reference.ticks(cron, zone, utc(after), len(expected))
    assert found == [utc(text) for text in expected]


def _fields(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    # cronsim reads the weekday 0-0 as the whole week.
    pairs = st.lists(value, min_size=2, max_size=2, unique=True).map(sorted)
    ranges = pairs.map(lambda ends: f"{ends[0]}-{ends[1]}")
    step = st.integers(1, high).map(lambda every: f"/{every}")
    item = st.one_of(
        value.map(str), ranges, st.just("*"), st.tuples(ranges | st.just("*"), step).map("".join)
    )
    lists = st.lists(item.filter(lambda one: one[0] != "*"), min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), item, lists)


CRONS = st.tuples(
    _fields(0, 59), _fields(0, 23), _fields(1, 31), _fields(1, 12), _fields(0, 6)
).map(" ".join)
TIMES = st.integers(0, 17 * 525_600).map(
    lambda minutes: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)


@pytest.mark.slow("hypothesis draws hundreds of expressions", ci="mariadb")
@pytest.mark.timeout(limit(120))
@pytest.mark.promise("P31")
def test_random_expressions_agree_with_cronsim(connection: Connection) -> None:
    @settings(
        max_examples=times(250),
        deadline=None,
        derandomize=not IS_GIVEN,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(CRONS, st.sampled_from(ZONES), TIMES)
    def compare(cron: str, zone: str, after: datetime) -> None:
        found = ticks(connection, cron=cron, time_zone=zone, after=after, max_ticks=4)
        expected = reference.ticks(cron, zone, after, 4)
        # Time zones end there on MariaDB and MySQL.
        found, expected = (
            [tick for tick in each if tick.year < 2038] for each in (found, expected)
        )
        assert found == expected, (cron, zone, after)

    compare()


@pytest.mark.promise("P31")
def test_interval_does_not_drift(connection: Connection) -> None:
    start = utc("2026-01-01T00:00:00.25")
    found = ticks(connection, interval_seconds=1.5, after=start, max_ticks=1000)
    assert found == [start + timedelta(seconds=1.5) * number for number in range(1, 1001)]


@pytest.mark.promise("P31")
def test_interval_ends_with_year_9999(connection: Connection) -> None:
    found = ticks(
        connection, interval_seconds=315360000, after=utc("2099-01-01T00:00"), max_ticks=1000
    )
    assert len(found) == 790
    assert found[-1].year < 10_000


def test_next_ticks_returns_5_from_now_by_default(connection: Connection) -> None:
    found = ticks(connection, cron="* * * * *")
    now = datetime.now(UTC)
    assert len(found) == 5
    assert abs(found[0] - now) <= timedelta(seconds=61)


BAD = [
    "", "*", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *",
    "* * * 0 *", "* * * 13 *", "* * * * 8", "*/0 * * * *", "5-1 * * * *", "*-5 * * * *",
    "a * * * *", "* * * foo *", "* * * * jan", "* * * mon *", "1,,2 * * * *", ", * * * *",
    "1- * * * *", "-1 * * * *", "1/ * * * *", "*/x * * * *", "@never", "@reboot", "1.5 * * * *",
    "* * * * an ", "* * * an *", "' * * * *", "% * * * *", "0 0 L * *", "100 * * * *",
    "* " * 100_000, "* * * janu *", "0 0 30 2 *x", "\N{ARABIC-INDIC DIGIT ONE} * * * *", "* " * 150,
]  # fmt: skip


@pytest.mark.promise("P15")
@together("cron", BAD)
def test_next_ticks_refuses_invalid_cron(connection: Connection, cron: str) -> None:
    assert "cron" in refused(connection, "RQ711", "next_ticks", cron=cron)


@pytest.mark.promise("P15")
def test_next_ticks_of_impossible_day_is_empty(connection: Connection) -> None:
    assert ticks(connection, cron="0 0 30 2 *") == []


@pytest.mark.promise("P15")
@together(
    ("wrong", "word"),
    [
        ({}, "cron"),
        ({"cron": "* * * * *", "interval_seconds": 60}, "cron"),
        ({"interval_seconds": 0.9}, "interval_seconds"),
        ({"interval_seconds": -1}, "interval_seconds"),
        ({"interval_seconds": 315360001}, "interval_seconds"),
        ({"cron": "* * * * *", "time_zone": "Europe/Nowhere"}, "time_zone"),
        ({"cron": "* * * * *", "time_zone": ""}, "time_zone"),
        ({"cron": "* * * * *", "time_zone": "' or 1=1"}, "time_zone"),
        ({"cron": "* * * * *", "max_ticks": 0}, "max_ticks"),
        ({"cron": "* * * * *", "max_ticks": 1001}, "max_ticks"),
        ({"cron": "* * * * *", "after": utc("1999-12-31T00:00")}, "after"),
        ({"cron": "* * * * *", "after": utc("2100-01-02T00:00")}, "after"),
    ],
)
def test_next_ticks_refuses_invalid_arguments(
    connection: Connection, wrong: dict[str, Any], word: str
) -> None:
    assert word in refused(connection, "RQ711", "next_ticks", **wrong)
