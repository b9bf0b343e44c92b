"""rowq citus ...: install, upgrade, status, remove; for PostgreSQL on several nodes."""

from typing import TYPE_CHECKING

import typer

from rowq.cli.exit_codes import ExitCode
from rowq.cli.options import AsJson, Url
from rowq.cli.output import print_json, print_rows
from rowq.cli.streams import printable
from rowq.engines import engine_for_url

if TYPE_CHECKING:
    from rowq.postgres.citus.install import InstalledNode

app = typer.Typer(
    help="Spread queues over the nodes of a Citus cluster (PostgreSQL).", no_args_is_help=True
)


@app.command()
def install(url: Url, as_json: AsJson = False) -> None:
    """Install rowq on all nodes, and let calls go to the node of a queue; harmless to repeat.

    The URL is a superuser's, of the coordinator. Run it again after a node was added.
    """
    _require_postgres(url)
    from rowq.postgres.citus.install import install as install_all

    _print_installed(install_all(url), as_json)


@app.command()
def upgrade(url: Url, as_json: AsJson = False) -> None:
    """Migrate all nodes; each in one transaction, the coordinator last."""
    _require_postgres(url)
    from rowq.postgres.citus.install import upgrade as upgrade_all

    _print_installed(upgrade_all(url), as_json)


@app.command()
def status(url: Url, as_json: AsJson = False) -> None:
    """Show what is on which node; exits with 4 when something is not as it should be."""
    _require_postgres(url)
    from rowq.postgres.citus.status import cluster_status

    found = cluster_status(url)
    if as_json:
        print_rows(found, as_json, nothing="")
    else:
        shown = ["node", "role", "installed", "carries", "queues"]
        print_rows(found, as_json, nothing="", columns=shown)
        for one in found:
            for problem in one.problems:
                typer.echo(f"{one.node}: {printable(problem)}")
    if any(one.problems for one in found):
        raise typer.Exit(ExitCode.INCOMPLETE)


@app.command()
def remove(url: Url, as_json: AsJson = False) -> None:
    """Let every node answer for itself again; its queues and messages stay where they are."""
    _require_postgres(url)
    from rowq.postgres.citus.install import remove as remove_all

    names = remove_all(url)
    if as_json:
        print_json({"nodes": names})
        return
    for name in names:
        typer.echo(f"{name}: answers for itself")


def _require_postgres(url: str) -> None:
    engine = engine_for_url(url)
    if engine.name != "postgres":
        raise typer.BadParameter(f"a Citus cluster is PostgreSQL, this is {engine.name}")


def _print_installed(done: "tuple[InstalledNode, ...]", as_json: bool) -> None:
    if as_json:
        print_rows(done, as_json, nothing="")
        return
    for node in done:
        for number in node.applied:
            typer.echo(f"{node.name}: installed migration {number}")
        typer.echo(f"{node.name}: migration {node.installed}, carries calls")
        for notice in node.notices:
            typer.echo(f"notice: {node.name}: {printable(notice)}", err=True)
