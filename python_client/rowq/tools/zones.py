"""Shows times by the clocks of a time zone that a schedule names."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def clock_of(name: str) -> tzinfo:
    """Return a time zone of this machine; UTC if the machine lacks the server's name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def local_text(time: datetime, clock: tzinfo) -> str:
    """Return a time to the second, with the abbreviation of its zone."""
    return f"{time.astimezone(clock):%Y-%m-%d %H:%M:%S %Z}"
