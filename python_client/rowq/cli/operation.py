"""stats, claims, health, maintain: the state of the queues, and their maintenance."""

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.live import Live

from rowq.cli.database import open_queue
from rowq.cli.exit_codes import ExitCode
from rowq.cli.options import AnyQueue, AsJson, Url
from rowq.cli.output import LEVEL_STYLES, console, print_rows, record, table
from rowq.messages import QueueStats
from rowq.queue import Queue

_COUNTS = ("ready", "delayed", "leased", "dead", "blocked")
_SHOWN = ("queue_name", "is_paused", *_COUNTS, "oldest_ready_seconds")


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (stats, claims, health, maintain):
        app.command(rich_help_panel="Operation")(command)


def stats(
    url: Url,
    queue_name: AnyQueue = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 2.0,
    max_count: Annotated[
        int, typer.Option(help="Count no further; a count that reaches it is shown with a +.")
    ] = 100_000,
    as_json: AsJson = False,
) -> None:
    """Show how many messages of each kind the queues hold."""
    with open_queue(url) as queue:
        _print(_read(queue, queue_name, max_count), max_count, as_json)
        if watch:
            with suppress(KeyboardInterrupt):
                _watch(queue, queue_name, max_count, interval, as_json)


def claims(
    url: Url,
    queue_name: AnyQueue = None,
    after: Annotated[int, typer.Option(metavar="ID", help="Continue after this claim.")] = 0,
    limit: Annotated[int, typer.Option(metavar="N", help="Most claims to list.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List who is at work on what, the oldest claims first; less than 0 left is run out."""
    with open_queue(url) as queue:
        found = queue.list_claims(queue_name, after_claim_id=after, max_claims=limit)
    print_rows(found, as_json, nothing="no claims", style=_lease_style)


def health(url: Url, as_json: AsJson = False) -> None:
    """Show what needs attention; exits with 4 when a check is critical."""
    with open_queue(url) as queue:
        checks = queue.health()
    print_rows(checks, as_json, nothing="nothing to check", style=_style)
    if any(check.status == "critical" for check in checks):
        raise typer.Exit(ExitCode.INCOMPLETE)


def maintain(
    url: Url,
    queue_name: AnyQueue = None,
    batch_size: Annotated[int, typer.Option(help="Most messages per task and queue.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Do all housekeeping once; workers do it by themselves."""
    with open_queue(url) as queue:
        done = queue.maintain(queue_name, batch_size)
    print_rows(done, as_json, nothing="no queues")


def _read(queue: Queue, queue_name: str | None, max_count: int) -> list[QueueStats]:
    return queue.queue_stats(queue_name, max_count=max_count)


def _print(found: list[QueueStats], max_count: int, as_json: bool) -> None:
    rows: list[Any] = list(found) if as_json else [_counts(stats, max_count) for stats in found]
    print_rows(rows, as_json, nothing="no queues", columns=_SHOWN)


def _watch(
    queue: Queue, queue_name: str | None, max_count: int, interval: float, as_json: bool
) -> None:
    if as_json or not sys.stdout.isatty():
        while True:
            sys.stdout.flush()
            time.sleep(interval)
            _print(_read(queue, queue_name, max_count), max_count, as_json)
    with Live(console=console(), auto_refresh=False, screen=True) as live:
        while True:
            found = [_counts(stats, max_count) for stats in _read(queue, queue_name, max_count)]
            live.update(table(found, _SHOWN) if found else "no queues", refresh=True)
            time.sleep(interval)


def _counts(stats: QueueStats, max_count: int) -> dict[str, Any]:
    """Return a queue's stats for people: a count that was cut off says so."""
    facts: dict[str, Any] = record(stats)
    return facts | {name: f"{facts[name]}+" for name in _COUNTS if (facts[name] or 0) >= max_count}


def _lease_style(claim: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES["warning"] if claim["lease_left_seconds"] < 0 else None


def _style(check: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES.get(check["status"])
