"""Time zones for a private server, from Python's: the server's time zone tables are empty."""

from bisect import bisect_left
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo

from tests.engines.base import Connection

ZONES = (
    "Africa/Casablanca", "America/Havana", "America/New_York", "America/Santiago",
    "America/St_Johns", "Asia/Kathmandu", "Asia/Kolkata", "Australia/Adelaide",
    "Australia/Lord_Howe", "Europe/Berlin", "Europe/Dublin", "Europe/London", "Pacific/Apia",
    "Pacific/Auckland", "Pacific/Chatham",
)  # fmt: skip

_DAY = 86_400
_FIRST = 915_148_800
"""The beginning of 1999, in seconds since 1970."""
_END = 2_145_916_800
"""The end of 2037, where servers' time zone files end."""

_Clock = tuple[int, bool, str]


def fill(connection: Connection) -> None:
    """Write the zones into the server's tables, without its binary log."""
    connection.execute("set session sql_log_bin = 0")
    for name in ZONES:
        changes = _changes(name)
        clocks = sorted({clock for _, clock in changes})
        connection.execute("insert into mysql.time_zone (use_leap_seconds) values ('N')")
        connection.execute("set @zone = last_insert_id()")
        connection.execute("insert into mysql.time_zone_name values (%s, @zone)", [name])
        for number, (offset, is_summer, short) in enumerate(clocks):
            connection.execute(
                "insert into mysql.time_zone_transition_type values (@zone, %s, %s, %s, %s)",
                [number, offset, is_summer, short],
            )
        rows = ", ".join(f"(@zone, {second}, {clocks.index(clock)})" for second, clock in changes)
        connection.execute(f"insert into mysql.time_zone_transition values {rows}")


@cache
def _changes(name: str) -> list[tuple[int, _Clock]]:
    """Return the changes of a zone: seconds since 1970, and the new clock."""
    zone = ZoneInfo(name)
    changes = [(_FIRST, _clock(zone, _FIRST))]
    for second in range(_FIRST + _DAY, _END, _DAY):
        later = _clock(zone, second)
        if later != changes[-1][1]:
            changes.append((_first_second(zone, later, second), later))
    return changes


def _first_second(zone: ZoneInfo, clock: _Clock, last: int) -> int:
    """Return the first second of a clock, within the day before `last`."""
    return bisect_left(
        range(last), True, lo=last - _DAY, key=lambda second: _clock(zone, second) == clock
    )


def _clock(zone: ZoneInfo, second: int) -> _Clock:
    """Return a zone's UTC offset, whether it is summer time, and its abbreviation."""
    local = datetime.fromtimestamp(second, zone)
    offset = local.utcoffset()
    assert offset is not None
    return int(offset.total_seconds()), bool(local.dst()), str(local.tzname())
