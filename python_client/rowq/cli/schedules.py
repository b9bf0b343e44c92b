"""rowq schedule ...: create, alter, pause, resume, list, next, run, drop."""

from datetime import UTC, datetime, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from rowq.cli.database import open_queue
from rowq.cli.errors import CommandFailed
from rowq.cli.exit_codes import ExitCode
from rowq.cli.options import (
    AnyQueue,
    AsJson,
    Headers,
    MessageMaxAttempts,
    MessageType,
    QueueName,
    Url,
    header_pairs,
    moment,
)
from rowq.cli.output import print_enqueued, print_json, print_rows
from rowq.cli.streams import say
from rowq.messages import ScheduleOutcome

app = typer.Typer(help="Let the database enqueue messages at certain times.", no_args_is_help=True)

_LISTED = (
    "queue_name", "schedule_name", "cron", "interval_seconds", "time_zone", "is_paused",
    "next_run_at", "last_run_at", "last_message_id", "last_error",
)  # fmt: skip

ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]
Body = Annotated[str | None, typer.Argument(metavar="BODY", help="Text body of its messages.")]
Cron = Annotated[
    str | None,
    typer.Option(metavar="FIELDS", help="Minute, hour, day, month and weekday, as in a crontab."),
]
Every = Annotated[
    float | None, typer.Option("--every", metavar="SECONDS", help="An interval, instead of --cron.")
]
Zone = Annotated[
    str | None, typer.Option("--zone", help="Whose clocks --cron means; UTC unless given.")
]
Missed = Annotated[
    str | None,
    typer.Option(help="Ticks more than 60 seconds late: once (unless given), all or skip."),
]
Overlap = Annotated[
    bool | None,
    typer.Option(
        "--overlap/--no-overlap", help="A message even while that of an earlier tick has not ended."
    ),
]
Starts = Annotated[
    str | None, typer.Option("--starts", metavar="TIME", help="No tick before this moment.")
]
Ends = Annotated[
    str | None, typer.Option("--ends", metavar="TIME", help="No tick after this moment.")
]
Group = Annotated[str | None, typer.Option(help="Group of its messages.")]
AnyPriority = Annotated[
    int | None, typer.Option(help="Priority of its messages, 0 to 9; 5 unless given.")
]


@app.command()
def create(
    queue_name: QueueName,
    schedule_name: ScheduleName,
    url: Url,
    body: Body = None,
    cron: Cron = None,
    every: Every = None,
    zone: Zone = None,
    message_type: MessageType = None,
    header: Headers = None,
    priority: AnyPriority = None,
    max_attempts: MessageMaxAttempts = None,
    group: Group = None,
    missed: Missed = None,
    overlap: Overlap = None,
    starts: Starts = None,
    ends: Ends = None,
    as_json: AsJson = False,
) -> None:
    """Create a schedule; one that exists is left as it is, with exit status 4."""
    with open_queue(url) as queue:
        made = queue.create_schedule(
            queue_name,
            schedule_name,
            cron=cron,
            interval_seconds=every,
            time_zone="UTC" if zone is None else zone,
            text=body,
            message_type=message_type,
            headers=header_pairs(header),
            priority=5 if priority is None else priority,
            max_attempts=max_attempts,
            group_key=group,
            missed="once" if missed is None else missed,
            overlap=overlap is not False,
            starts_at=moment(starts),
            ends_at=moment(ends),
        )
    _print_outcome(made, as_json)
    if made.outcome == "exists":
        raise CommandFailed(
            ExitCode.INCOMPLETE,
            f"{schedule_name} exists and is as it was; rowq schedule alter changes it",
        )


@app.command()
def alter(
    queue_name: QueueName,
    schedule_name: ScheduleName,
    url: Url,
    body: Body = None,
    cron: Cron = None,
    every: Every = None,
    zone: Zone = None,
    message_type: MessageType = None,
    header: Headers = None,
    priority: AnyPriority = None,
    max_attempts: MessageMaxAttempts = None,
    group: Group = None,
    missed: Missed = None,
    overlap: Overlap = None,
    starts: Starts = None,
    ends: Ends = None,
    as_json: AsJson = False,
) -> None:
    """Change a schedule; what is left out stays as it is, and it counts anew from now."""
    with open_queue(url) as queue:
        altered = queue.alter_schedule(
            queue_name,
            schedule_name,
            cron=cron,
            interval_seconds=every,
            time_zone=zone,
            text=body,
            message_type=message_type,
            headers=header_pairs(header),
            priority=priority,
            max_attempts=max_attempts,
            group_key=group,
            missed=missed,
            overlap=overlap,
            starts_at=moment(starts),
            ends_at=moment(ends),
        )
    _print_outcome(altered, as_json)


@app.command()
def pause(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Stop a schedule; what it misses is not made up for."""
    with open_queue(url) as queue:
        _print_outcome(queue.alter_schedule(queue_name, schedule_name, is_paused=True), as_json)


@app.command()
def resume(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Let a schedule go on."""
    with open_queue(url) as queue:
        _print_outcome(queue.alter_schedule(queue_name, schedule_name, is_paused=False), as_json)


@app.command("list")
def list_schedules(url: Url, queue_name: AnyQueue = None, as_json: AsJson = False) -> None:
    """List schedules with their next and last runs."""
    with open_queue(url) as queue:
        found = queue.list_schedules(queue_name)
    print_rows(found, as_json, nothing="no schedules", columns=_LISTED)


@app.command("next")
def next_ticks(
    url: Url,
    cron: Annotated[
        str | None, typer.Argument(metavar="FIELDS", help="Times as in a crontab.")
    ] = None,
    every: Every = None,
    zone: Zone = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Begin here; now unless given.")
    ] = None,
    count: Annotated[int, typer.Option(help="How many ticks to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show when a schedule with these times would run, by the clocks of its zone."""
    name = "UTC" if zone is None else zone
    with open_queue(url) as queue:
        ticks = queue.next_ticks(
            cron, interval_seconds=every, time_zone=name, after=moment(after), max_ticks=count
        )
    clock = _clock(name)
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
    """Enqueue a schedule's message now; its next tick stays as it is."""
    with open_queue(url) as queue:
        made = queue.run_schedule(queue_name, schedule_name)
    print_enqueued(made, as_json)


@app.command()
def drop(
    queue_name: QueueName, schedule_name: ScheduleName, url: Url, as_json: AsJson = False
) -> None:
    """Remove a schedule; the messages that it made stay."""
    with open_queue(url) as queue:
        dropped = queue.drop_schedule(queue_name, schedule_name)
    if as_json:
        print_json(dropped)
    else:
        say(f"{dropped.schedule_name}: {dropped.outcome}")


def _clock(name: str) -> tzinfo:
    """Return a time zone of this machine, UTC where it does not know the server's name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _print_outcome(outcome: ScheduleOutcome, as_json: bool) -> None:
    if as_json:
        print_json(outcome)
    else:
        say(f"{outcome.schedule_name}: {outcome.outcome}, {_when(outcome.next_run_at)}")


def _when(next_run_at: datetime | None) -> str:
    return "does not run" if next_run_at is None else f"next run {next_run_at.isoformat()}"
