"""Ticks of a cron expression by cronsim, which follows Debian's cron.

rowq differs twice: cronsim returns the end of a gap once for each skipped time, rowq only once; and
cronsim refuses an impossible day such as 30 February, for which rowq has no tick.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_HORIZON = timedelta(days=3650)


def ticks(cron: str, zone: str, after: datetime, count: int) -> list[datetime]:
    """Return up to `count` ticks after `after`, in UTC; stop at a gap of 10 years."""
    return list(islice(_ticks(cron, zone, after), count))


def _ticks(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    latest = after
    fields = _WORDS.get(cron, " ".join(cron.split()))
    try:
        times = CronSim(fields, after.astimezone(ZoneInfo(zone)))
    except CronSimError as error:
        if str(error) == "Bad day-of-month" and fields.split()[3] != "*":
            return
        raise
    for local in times:
        tick = local.astimezone(UTC)
        if tick > latest + _HORIZON:
            return
        if tick > latest:
            yield tick
            latest = tick
