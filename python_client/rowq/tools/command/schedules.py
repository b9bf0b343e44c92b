"""The commands rowq schedule ..."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Annotated, Any

import typer

from rowq.messages import Schedule, ScheduleOutcome
from rowq.options import ScheduleChanges
from rowq.queue import Queue
from rowq.tools.console.database import open_queue
from rowq.tools.console.errors import CommandFailed
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import (
    AnyQueue,
    AsJson,
    MessageMaxAttempts,
    QueueName,
    Url,
    has_options,
    header_pairs,
    parse_time,
)
from rowq.tools.console.output import print_enqueued, print_json, print_rows
from rowq.tools.console.streams import say
from rowq.tools.terminal import clock_of, local_text

app = typer.Typer(help="Enqueue messages on a schedule.", no_args_is_help=True)

ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]
Body = Annotated[str | None, typer.Argument(metavar="BODY", help="Text body of its messages.")]
Every = Annotated[
    float | None,
    typer.Option("--every", metavar="SECONDS", help="Interval in seconds, instead of --cron."),
]
Zone = Annotated[str | None, typer.Option("--zone", help="Time zone of --cron. Default: UTC.")]
_NAMED: Mapping[str, Any] = {
    "cron": Annotated[
        str | None,
        typer.Option(
            metavar="FIELDS", help="Minute, hour, day, month and weekday, as in a crontab."
        ),
    ],
    "interval_seconds": Every,
    "time_zone": Zone,
    "priority": Annotated[
        int | None, typer.Option(help="Priority of its messages: 0 to 9. Default 5.")
    ],
    "max_attempts": MessageMaxAttempts,
    "group_key": Annotated[str | None, typer.Option("--group", help="Group of its messages.")],
    "missed": Annotated[
        str | None,
        typer.Option(help="Ticks more than 60 seconds late: once, all or skip. Default: once."),
    ],
    "overlap": Annotated[
        bool | None,
        typer.Option(
            "--overlap/--no-overlap",
            help="Enqueue even if the message of an earlier tick has not ended.",
        ),
    ],
    "counts_from": Annotated[
        bool | None,
        typer.Option(
            "--from-end/--from-start",
            help="Count --every from the end of the message before. Default: from --starts.",
        ),
    ],
    "starts_at": Annotated[
        str | None, typer.Option("--starts", metavar="TIME", help="No tick before this time.")
    ],
    "ends_at": Annotated[
        str | None, typer.Option("--ends", metavar="TIME", help="No tick after this time.")
    ],
}
_has_settings = has_options(ScheduleChanges, without={"is_paused"}, named=_NAMED)


@app.command()
@_has_settings
def create(
    queue_name: QueueName,
    schedule_name: ScheduleName,
    url: Url,
    body: Body = None,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Create a schedule; an existing one stays unchanged.

    Exit status 4: the schedule exists.
    """
    settings = {name: value for name, value in _read(values).items() if value is not None}
    zone = settings.get("time_zone", "UTC")
    with open_queue(url) as queue:
        created = queue.create_schedule(queue_name, schedule_name, text=body, **settings)
        if created.outcome == "exists" and not as_json:
            zone = _zone_of(queue, queue_name, schedule_name)
    _print_outcome(created, zone, as_json)
    if created.outcome == "exists":
        raise CommandFailed(
            ExitCode.INCOMPLETE,
            f"schedule {schedule_name} already exists; use rowq schedule alter",
        )


@app.command()
@_has_settings
def alter(
    queue_name: QueueName,
    schedule_name: ScheduleName,
    url: Url,
    body: Body = None,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Change a schedule; omitted settings stay unchanged.

    The next tick is computed from now.
    """
    _alter(url, queue_name, schedule_name, as_json, text=body, **_read(values))


@app.command()
def pause(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Pause a schedule; missed ticks are skipped."""
    _alter(url, queue_name, schedule_name, as_json, is_paused=True)


@app.command()
def resume(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Resume a schedule."""
    _alter(url, queue_name, schedule_name, as_json, is_paused=False)


@app.command("list")
def list_schedules(url: Url, queue_name: AnyQueue = None, as_json: AsJson = False) -> None:
    """List schedules with their next and last runs, in their time zones.

    With --json, times are UTC and all settings are included.
    """
    with open_queue(url) as queue:
        found = queue.list_schedules(queue_name)
    rows = found if as_json else [_row(schedule) for schedule in found]
    print_rows(rows, as_json, nothing="no schedules")


@app.command("next")
def next_ticks(
    url: Url,
    cron: Annotated[
        str | None, typer.Argument(metavar="FIELDS", help="Cron fields, as in a crontab.")
    ] = None,
    every: Every = None,
    zone: Zone = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start time. Default: now.")
    ] = None,
    count: Annotated[int, typer.Option(help="Number of ticks.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show when a schedule would run, in its time zone."""
    name = "UTC" if zone is None else zone
    with open_queue(url) as queue:
        ticks = queue.next_ticks(
            cron, interval_seconds=every, time_zone=name, after=parse_time(after), max_ticks=count
        )
    clock = clock_of(name)
    for tick in ticks:
        shown = tick.astimezone(clock).isoformat()
        if as_json:
            print_json({"tick": shown})
        else:
            say(f"{shown}  {tick.astimezone(clock):%a}")


@app.command()
def run(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Enqueue a schedule's message now; its next tick is unchanged."""
    with open_queue(url) as queue:
        enqueued = queue.run_schedule(queue_name, schedule_name)
    print_enqueued(enqueued, as_json)


@app.command()
def drop(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Drop a schedule; its messages stay."""
    with open_queue(url) as queue:
        dropped = queue.drop_schedule(queue_name, schedule_name)
    if as_json:
        print_json(dropped)
    else:
        say(f"{dropped.schedule_name}: {dropped.outcome}")


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as keyword arguments of Queue.alter_schedule."""
    times = {name: parse_time(values[name]) for name in ("starts_at", "ends_at")}
    from_end = values["counts_from"]
    counts_from = None if from_end is None else "end" if from_end else "start"
    headers = header_pairs(values["headers"])
    return {**values, **times, "headers": headers, "counts_from": counts_from}


def _row(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as a row of a table."""
    clock = clock_of(schedule.time_zone)
    every = schedule.interval_seconds
    origin = " from the end" if schedule.counts_from == "end" else ""
    return {
        "queue_name": schedule.queue_name,
        "schedule_name": schedule.schedule_name,
        "times": schedule.cron if every is None else f"every {every:g} s{origin}",
        "time_zone": schedule.time_zone,
        "next_run": "paused" if schedule.is_paused else _local(schedule.next_run_at, clock),
        "last_run": _local(schedule.last_run_at, clock),
        "last_error": schedule.last_error,
    }


def _local(time: datetime | None, clock: tzinfo) -> str | None:
    return None if time is None else local_text(time, clock)


def _zone_of(queue: Queue, queue_name: str, schedule_name: str) -> str:
    """Return the time zone of a schedule; UTC if another session has just dropped it."""
    found = queue.list_schedules(queue_name)
    return next((one.time_zone for one in found if one.schedule_name == schedule_name), "UTC")


def _alter(url: str, queue_name: str, schedule_name: str, as_json: bool, **changes: Any) -> None:
    """Change a schedule, and print its next run in its time zone."""
    with open_queue(url) as queue:
        altered = queue.alter_schedule(queue_name, schedule_name, **changes)
        zone = "UTC" if as_json else _zone_of(queue, queue_name, schedule_name)
    _print_outcome(altered, zone, as_json)


def _print_outcome(outcome: ScheduleOutcome, zone: str, as_json: bool) -> None:
    if as_json:
        print_json(outcome)
    else:
        next_run = _when(outcome.next_run_at, clock_of(zone))
        say(f"{outcome.schedule_name}: {outcome.outcome}, {next_run}")


def _when(next_run_at: datetime | None, clock: tzinfo) -> str:
    if next_run_at is None:
        return "does not run"
    return f"next run {next_run_at.astimezone(clock).isoformat()}"
