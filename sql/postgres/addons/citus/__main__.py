"""The command for queues on a Citus cluster; see README.md in this folder.

python -m sql.postgres.addons.citus install|upgrade|status|remove|build
"""

from typing import Any

import typer

from rowq.engines import engine_for_url
from rowq.tools.console.errors import Guarded
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AsJson, Url
from rowq.tools.console.output import print_json, print_rows
from rowq.tools.console.streams import say
from rowq.tools.terminal import printable
from sql.postgres.addons.citus import build as scripts
from sql.postgres.addons.citus import install as installer
from sql.postgres.addons.citus.status import cluster_status

app = typer.Typer(
    cls=Guarded,
    help="Spread queues over the nodes of a Citus cluster (PostgreSQL).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _coordinator(url: str) -> str:
    if engine_for_url(url).name != "postgres":
        raise typer.BadParameter("a Citus cluster needs a PostgreSQL URL")
    return url


@app.command()
def install(url: Url, as_json: AsJson = False) -> None:
    """Install rowq on all nodes and forward calls to the queue's node; can be repeated.

    The URL is a superuser's, of the coordinator. Run it again after adding a node.
    """
    _print_installed(installer.install(_coordinator(url)), as_json)


@app.command()
def upgrade(url: Url, as_json: AsJson = False) -> None:
    """Migrate all nodes during operation; if interrupted, run it again."""
    _print_installed(installer.upgrade(_coordinator(url)), as_json)


@app.command()
def status(url: Url, as_json: AsJson = False) -> None:
    """Show the state of all nodes; exit with 4 on a problem."""
    found = cluster_status(_coordinator(url))
    shown = None if as_json else ["node", "role", "installed", "carries", "queues"]
    print_rows(found, as_json, nothing="", columns=shown)
    if not as_json:
        for one in found:
            for problem in one.problems:
                say(f"{one.node}: {printable(problem)}")
    if any(one.problems for one in found):
        raise typer.Exit(ExitCode.INCOMPLETE)


@app.command()
def remove(url: Url, as_json: AsJson = False) -> None:
    """Let each node answer for itself again; queues and messages stay."""
    names = installer.remove(_coordinator(url))
    if as_json:
        print_json({"nodes": names})
        return
    for name in names:
        say(f"{name}: answers for itself")
    say("kept rowq_citus.route, so that install finds the queues")


@app.command()
def build() -> None:
    """Write the scripts for psql into build/citus."""
    written = scripts.write_scripts()
    say(f"{scripts.BUILT.relative_to(scripts.BUILT.parents[1])}: {len(written)} scripts written")


def _print_installed(done: tuple[Any, ...], as_json: bool) -> None:
    if as_json:
        print_rows(done, as_json, nothing="")
        return
    for node in done:
        for number in node.applied:
            say(f"{node.name}: installed migration {number}")
        say(f"{node.name}: migration {node.installed}, forwards calls")
        for notice in node.notices:
            say(f"notice: {node.name}: {printable(notice)}", err=True)


if __name__ == "__main__":
    app(prog_name="python -m sql.postgres.addons.citus")
