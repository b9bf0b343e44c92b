"""stats, claims, health, maintain: the state of the queues, and their maintenance."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.live import Live

from rowq.cli.database import only_url, open_queue, open_striped, servers_in
from rowq.cli.exit_codes import ExitCode
from rowq.cli.options import AnyQueue, AsJson, Stripes, Url, Urls
from rowq.cli.output import LEVEL_STYLES, console, place_of, print_rows, record, table
from rowq.errors import CannotConnect, ConnectionLost
from rowq.messages import HealthCheck
from rowq.parts import server_away
from rowq.queue import Queue
from rowq.striped import Striped

_COUNTS = ("ready", "delayed", "leased", "dead", "blocked")
_SHOWN = ("queue_name", "is_paused", *_COUNTS, "oldest_ready_seconds")


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (stats, claims, health, maintain):
        app.command(rich_help_panel="Operation")(command)


def stats(
    url: Urls,
    queue_name: AnyQueue = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 2.0,
    max_count: Annotated[
        int, typer.Option(help="Count no further; a count that reaches it is shown with a +.")
    ] = 100_000,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Show how many messages of each kind the queues hold."""
    if stripes is not None:
        if queue_name is None:
            raise typer.BadParameter("--stripes is for one queue: name it")
        with open_striped(url, queue_name, stripes) as striped:
            _show(lambda: _read_parts(striped, max_count), max_count, watch, interval, as_json)
        return
    with open_queue(only_url(url)) as queue:
        _show(lambda: _read(queue, queue_name, max_count), max_count, watch, interval, as_json)


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


def health(url: Urls, as_json: AsJson = False) -> None:
    """Show what needs attention; exits with 4 when a check is critical."""
    servers = servers_in(url)
    if isinstance(servers, str):
        with open_queue(servers) as queue:
            checks = [record(check) for check in queue.health()]
    else:
        checks = [
            {"server": name} | record(check)
            for name, one in servers.items()
            for check in _health_of(one)
        ]
    print_rows(checks, as_json, nothing="nothing to check", style=_style)
    if any(check["status"] == "critical" for check in checks):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _health_of(url: str) -> list[HealthCheck]:
    """Return the findings on one of several servers; that it does not answer is one."""
    try:
        with open_queue(url) as queue:
            return queue.health()
    except (CannotConnect, ConnectionLost) as error:
        return [server_away(error)]


def maintain(
    url: Urls,
    queue_name: AnyQueue = None,
    batch_size: Annotated[int, typer.Option(help="Most messages per task and queue.")] = 1000,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Do all housekeeping once; workers do it by themselves."""
    if stripes is not None:
        if queue_name is None:
            raise typer.BadParameter("--stripes is for one queue: name it")
        with open_striped(url, queue_name, stripes) as striped:
            done = striped.maintain(batch_size)
    else:
        with open_queue(only_url(url)) as queue:
            done = queue.maintain(queue_name, batch_size)
    print_rows(done, as_json, nothing="no queues")


def _read(queue: Queue, queue_name: str | None, max_count: int) -> list[dict[str, Any]]:
    return [record(stats) for stats in queue.queue_stats(queue_name, max_count=max_count)]


def _read_parts(striped: Striped, max_count: int) -> list[dict[str, Any]]:
    """Return the stats of all parts; of one whose server does not answer, the reason."""
    return [
        place_of(one.part)
        | (dict.fromkeys(_SHOWN[1:]) if one.stats is None else record(one.stats))
        | ({} if one.part.server is None else {"error": one.error})
        for one in striped.queue_stats(max_count=max_count)
    ]


def _show(
    read: Callable[[], list[dict[str, Any]]],
    max_count: int,
    watch: bool,
    interval: float,
    as_json: bool,
) -> None:
    _print(read(), max_count, as_json)
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(read, max_count, interval, as_json)


def _print(found: list[dict[str, Any]], max_count: int, as_json: bool) -> None:
    rows = found if as_json else [_counts(facts, max_count) for facts in found]
    print_rows(rows, as_json, nothing="no queues", columns=_columns(found))


def _columns(found: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return what a table shows; of several servers also which, and why one does not answer."""
    return ("server", *_SHOWN, "error") if found and "server" in found[0] else _SHOWN


def _watch(
    read: Callable[[], list[dict[str, Any]]], max_count: int, interval: float, as_json: bool
) -> None:
    if as_json or not sys.stdout.isatty():
        while True:
            sys.stdout.flush()
            time.sleep(interval)
            _print(read(), max_count, as_json)
    with Live(console=console(), auto_refresh=False, screen=True) as live:
        while True:
            found = [_counts(facts, max_count) for facts in read()]
            live.update(table(found, _columns(found)) if found else "no queues", refresh=True)
            time.sleep(interval)


def _counts(facts: dict[str, Any], max_count: int) -> dict[str, Any]:
    """Return a queue's stats for people: a count that was cut off says so."""
    return facts | {name: f"{facts[name]}+" for name in _COUNTS if (facts[name] or 0) >= max_count}


def _lease_style(claim: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES["warning"] if claim["lease_left_seconds"] < 0 else None


def _style(check: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES.get(check["status"])
