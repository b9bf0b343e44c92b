"""rowq citus ...: install, upgrade, status, remove; for PostgreSQL on several nodes."""

from typing import Any

import typer

from rowq.engines import TOOLS, engine_for_url, part_of
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AsJson, Url
from rowq.tools.console.output import print_json, print_rows
from rowq.tools.console.streams import say
from rowq.tools.terminal import printable

app = typer.Typer(
    help="Spread queues over the nodes of a Citus cluster (PostgreSQL).", no_args_is_help=True
)


@app.command()
def install(url: Url, as_json: AsJson = False) -> None:
    """Install rowq on all nodes, and let calls go to the node of a queue; harmless to repeat.

    The URL is a superuser's, of the coordinator. Run it again after a node was added.
    """
    _print_installed(_part(url, "install").install(url), as_json)


@app.command()
def upgrade(url: Url, as_json: AsJson = False) -> None:
    """Migrate all nodes while calls go on; what was broken off goes on when run again."""
    _print_installed(_part(url, "install").upgrade(url), as_json)


@app.command()
def status(url: Url, as_json: AsJson = False) -> None:
    """Show what is on which node; exits with 4 when something is not as it should be."""
    found = _part(url, "status").cluster_status(url)
    if as_json:
        print_rows(found, as_json, nothing="")
    else:
        shown = ["node", "role", "installed", "carries", "queues"]
        print_rows(found, as_json, nothing="", columns=shown)
        for one in found:
            for problem in one.problems:
                say(f"{one.node}: {printable(problem)}")
    if any(one.problems for one in found):
        raise typer.Exit(ExitCode.INCOMPLETE)


@app.command()
def remove(url: Url, as_json: AsJson = False) -> None:
    """Let every node answer for itself again; its queues and messages stay where they are."""
    names = _part(url, "install").remove(url)
    if as_json:
        print_json({"nodes": names})
        return
    for name in names:
        say(f"{name}: answers for itself")
    say("rowq_citus.route stays, so that rowq citus install finds queues where they are")


def _part(url: str, name: str) -> Any:
    """Return a module of rowq.tools.engines.postgres.citus, if the URL is one of PostgreSQL."""
    engine = engine_for_url(url)
    if engine.name != "postgres":
        raise typer.BadParameter(f"a Citus cluster is PostgreSQL, this is {engine.name}")
    return part_of(engine.name, f"citus.{name}", TOOLS)


def _print_installed(done: tuple[Any, ...], as_json: bool) -> None:
    if as_json:
        print_rows(done, as_json, nothing="")
        return
    for node in done:
        for number in node.applied:
            say(f"{node.name}: installed migration {number}")
        say(f"{node.name}: migration {node.installed}, carries calls")
        for notice in node.notices:
            say(f"notice: {node.name}: {printable(notice)}", err=True)
