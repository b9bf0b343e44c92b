"""migrate, rollback, status, sql: rowq's tables and routines in a database."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from rowq.engines import engines
from rowq.tools import migrate as migrations
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AsJson, Url
from rowq.tools.console.output import print_facts, print_json, print_rows
from rowq.tools.console.streams import can_ask, confirm, say
from rowq.tools.migrate import Migrated, Plan, Status
from rowq.tools.migrate.release import named
from rowq.tools.terminal import printable


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (migrate, rollback, status, sql):
        app.command(rich_help_panel="The installation")(command)


def migrate(
    url: Url,
    to: Annotated[
        int | None, typer.Option(metavar="N", help="Install no migration above this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install rowq in a database, or upgrade it; harmless when there is nothing to do."""
    _print_migrated(migrations.migrate(url, to), as_json)


def rollback(
    url: Url,
    to: Annotated[
        int | None,
        typer.Option(metavar="N", help="Go back to this migration; 0 removes rowq.", min=0),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Throw messages away if need be, and ask nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Go back to an earlier migration, or remove rowq; without --to only say what would go.

    On a terminal it asks before it does anything. Elsewhere it refuses to throw messages away,
    archived ones too, unless there is --force. Without --to it exits with 2.
    """
    plan = migrations.plan_rollback(url, to)
    if to is None:
        _print_plan(plan, as_json)
        raise typer.Exit(ExitCode.USAGE)
    if plan.removed and not force and can_ask():
        confirm(_in_words(plan))
        force = bool(plan.losses.unfinished or plan.losses.archived)
    _print_migrated(migrations.rollback(url, to, force=force), as_json)


def status(url: Url, as_json: AsJson = False) -> None:
    """Show what is installed; exits with 4 when it is not up to date, or was changed by hand."""
    found = migrations.status(url)
    if as_json:
        print_json(found)
    else:
        _print_status(found)
    if found.pending or found.newer or found.drift:
        raise typer.Exit(ExitCode.INCOMPLETE)


def sql(
    engine: Annotated[
        str,
        typer.Option(
            help="Whose script: " + ", ".join(engine.name for engine in engines()) + ".",
            show_default=False,
        ),
    ],
    from_number: Annotated[
        int,
        typer.Option("--from", metavar="N", help="Only what comes after this migration."),
    ] = 0,
    without_owner: Annotated[
        bool,
        typer.Option(
            "--without-owner",
            help="MariaDB and MySQL: let the routines run as the account that runs the script,"
            " which need not be allowed to make rowq_owner@localhost then.",
        ),
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="For a driver or another tool: no commands of the engine's own client. The first"
            " lines say how it is run.",
        ),
    ] = False,
    flyway: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a versioned file for Flyway for each migration."),
    ] = None,
    alembic: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write revisions for Alembic, on a branch of their own, rowq."
        ),
    ] = None,
) -> None:
    """Print what migrate does as a script for the engine's own client, such as psql.

    Or in a form that other tools run. Whatever runs it, rowq status and rowq migrate know of it.
    """
    if without_owner and named(engine) != "mysql":
        raise typer.BadParameter("--without-owner is for MariaDB and MySQL")
    if sum((plain, flyway is not None, alembic is not None)) > 1:
        raise typer.BadParameter("choose one of --plain, --flyway and --alembic")
    with_owner = not without_owner
    if flyway is not None:
        files = migrations.flyway_files(engine, from_number, with_owner=with_owner)
        _write(flyway, files)
    elif alembic is not None:
        files = migrations.alembic_files(engine, from_number, with_owner=with_owner)
        _write(alembic, files)
    else:
        make = migrations.plain_script if plain else migrations.script
        sys.stdout.write(make(engine, from_number, with_owner=with_owner))


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path in migrations.write_files(folder, files):
        say(f"{path}: written")


def _print_migrated(done: Migrated, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    for number in done.applied:
        say(f"installed migration {number}")
    for number in done.rolled_back:
        say(f"removed migration {number}")
    if done.installed and not (done.applied or done.rolled_back):
        say(f"nothing to do: migration {done.installed} is installed")
    if not done.installed:
        say("rowq is removed")
    _print_notices(done.notices)


def _print_plan(plan: Plan, as_json: bool) -> None:
    if as_json:
        print_json(plan)
    elif plan.removed:
        say(_in_words(plan))
        say(f"Nothing is done yet. To do it: rowq rollback --to {plan.to}")
    else:
        say("Nothing is installed.")


def _in_words(plan: Plan) -> str:
    numbers = ", ".join(map(str, plan.removed))
    what = (
        f"migration {numbers}"
        if plan.to
        else f"migration {numbers}, which is all of rowq except its roles"
    )
    return f"This removes {what}, and throws away {plan.losses}."


def _print_status(found: Status) -> None:
    roles = [f"{name}{'' if there else ' (missing)'}" for name, there in found.roles.items()]
    print_facts(
        {
            "server": found.server,
            "installed": _installed(found),
            "pending": ", ".join(map(str, found.pending)) or "nothing",
            "owner": found.owner,
            "roles": ", ".join(roles),
        }
    )
    if found.newer:
        say(f"installed by a newer rowq: {printable(', '.join(found.newer))}")
    if found.drift:
        say("not as shipped:")
        records = [{"routine": drift.routine, "problem": drift.problem} for drift in found.drift]
        print_rows(records, as_json=False, nothing="")
    _print_notices(found.notices)


def _installed(found: Status) -> str:
    if not found.installed:
        return "nothing"
    version = "" if found.rowq_version is None else f"rowq {found.rowq_version}, "
    return f"{version}migration {found.installed}"


def _print_notices(notices: tuple[str, ...]) -> None:
    """Print notices, each as one line whatever the names in it are."""
    for notice in notices:
        say(f"notice: {printable(notice)}", err=True)
