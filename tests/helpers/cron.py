"""Which moments a cron expression names: what cronsim says, which follows Debian's cron.

rowq differs in two things: where the clocks are set forward over several times of one expression,
cronsim names the end of the gap once for each of them, and rowq once; and cronsim refuses a day
that no year has, such as 30 February, at which rowq has no tick.
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
    """Return up to `count` moments after `after`, in UTC, none of them ten years after another."""
    return list(islice(_ticks(cron, zone, after), count))


def _ticks(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    latest = after
    fields = _WORDS.get(cron, " ".join(cron.split()))
    try:
        moments = CronSim(fields, after.astimezone(ZoneInfo(zone)))
    except CronSimError as error:
        if str(error) == "Bad day-of-month" and fields.split()[3] != "*":
            return
        raise
    for local in moments:
        moment = local.astimezone(UTC)
        if moment > latest + _HORIZON:
            return
        if moment > latest:
            yield moment
            latest = moment
