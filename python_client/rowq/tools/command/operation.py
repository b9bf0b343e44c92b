"""The commands claims, health, maintain, after-failover and doctor."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rowq.errors import CannotConnect, ConnectionLost
from rowq.messages import HealthCheck
from rowq.tools.command.striped import open_striped
from rowq.tools.console.database import only_url, open_queue, servers_in
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AnyQueue, AsJson, Stripes, Url, Urls
from rowq.tools.console.output import LEVEL_STYLES, print_rows, record
from rowq.tools.doctor import Check, Status, examine
from rowq.worker.stripes import server_down

_STYLES = {Status.FAILED: "bold red", Status.WARNING: "yellow", Status.UNKNOWN: "dim"}


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (claims, health, maintain, after_failover):
        app.command(rich_help_panel="Operation")(command)


def register_doctor(app: typer.Typer) -> None:
    """Add the command doctor."""
    app.command(rich_help_panel="The installation")(doctor)


def claims(
    url: Url,
    queue_name: AnyQueue = None,
    after: Annotated[int, typer.Option(metavar="ID", help="Continue after this claim.")] = 0,
    limit: Annotated[int, typer.Option(metavar="N", help="Maximum number of claims.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List claims, oldest first; a negative lease has expired."""
    with open_queue(url) as queue:
        found = queue.list_claims(queue_name, after_claim_id=after, max_claims=limit)
    print_rows(found, as_json, nothing="no claims", style=_lease_style)


def health(url: Urls, as_json: AsJson = False) -> None:
    """Check the health of the queues and the server.

    Exit status 4: a check is critical.
    """
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
    """Return the health checks of one server; one check if it is unreachable."""
    try:
        with open_queue(url) as queue:
            return queue.health()
    except (CannotConnect, ConnectionLost) as error:
        return [server_down(error)]


def maintain(
    url: Urls,
    queue_name: AnyQueue = None,
    batch_size: Annotated[
        int, typer.Option(help="Maximum number of messages per task and queue.")
    ] = 1000,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Run all maintenance once; workers do this automatically."""
    if stripes is not None:
        if queue_name is None:
            raise typer.BadParameter("--stripes requires QUEUE")
        with open_striped(url, queue_name, stripes) as striped:
            done = striped.maintain(batch_size)
    else:
        with open_queue(only_url(url)) as queue:
            done = queue.maintain(queue_name, batch_size)
    print_rows(done, as_json, nothing="no queues")


def after_failover(url: Url, as_json: AsJson = False) -> None:
    """Continue numbers far beyond those that the old server may have given out.

    Run it once on the server that takes over, before its workers start. An old worker's claim then
    finishes no message of a new one.
    """
    with open_queue(url) as queue:
        moved = queue.after_failover()
    print_rows(moved, as_json, nothing="no numbers")


def _lease_style(claim: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES["warning"] if claim["lease_left_seconds"] < 0 else None


def _style(check: Mapping[str, Any]) -> str | None:
    return LEVEL_STYLES.get(check["status"])


def doctor(
    url: Url,
    as_json: AsJson = False,
) -> None:
    """Check server, installation, privileges, settings and clock.

    Sends one message through a temporary queue, and changes nothing else. A setting that is wrong
    but harmless is a warning. Exit status 4: a check failed.
    """
    checks: list[Check] = []
    for check in examine(url):
        checks.append(check)
        if as_json:
            print_rows([check], as_json, nothing="")
    if not as_json:
        print_rows(checks, as_json, nothing="", style=_found_style)
    if any(check.status is Status.FAILED for check in checks):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _found_style(check: Mapping[str, Any]) -> str | None:
    return _STYLES.get(check["status"])
