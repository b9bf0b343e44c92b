"""The commands migrate, rollback, status and sql."""

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
        int | None, typer.Option(metavar="N", help="Last migration to install. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install or upgrade rowq in a database."""
    _print_migrated(migrations.migrate(url, to), as_json)


def rollback(
    url: Url,
    to: Annotated[
        int | None,
        typer.Option(metavar="N", help="Migration to roll back to; 0 removes rowq.", min=0),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Delete messages if necessary, and do not ask.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Roll back to an earlier migration, or remove rowq.

    Without --to it only shows what would be removed, and exits with 2. On a terminal it asks first.
    Elsewhere, deleting messages, archived ones included, requires --force.
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
    """Show the installed version.

    Exit status 4: not up to date, or modified.
    """
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
            help="Engine: " + ", ".join(engine.name for engine in engines()) + ".",
            show_default=False,
        ),
    ],
    from_number: Annotated[
        int,
        typer.Option("--from", metavar="N", help="Only migrations after this one."),
    ] = 0,
    without_owner: Annotated[
        bool,
        typer.Option(
            "--without-owner",
            help="MariaDB and MySQL: let the routines run as the account that runs the script."
            " It then needs no right to create rowq_owner@localhost.",
        ),
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="SQL only, without client commands, for a driver or another tool. The first"
            " lines say how to run it.",
        ),
    ] = False,
    flyway: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for Flyway files, one per migration."),
    ] = None,
    alembic: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for Alembic revisions, on the branch rowq."),
    ] = None,
) -> None:
    """Print the migrations as a script for a client such as psql.

    rowq status and rowq migrate recognize what the script installs.
    """
    if without_owner and named(engine) != "mysql":
        raise typer.BadParameter("--without-owner requires --engine mysql")
    if sum((plain, flyway is not None, alembic is not None)) > 1:
        raise typer.BadParameter("--plain, --flyway and --alembic are mutually exclusive")
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
        say(f"Nothing was changed. To do it: rowq rollback --to {plan.to}")
    else:
        say("Nothing is installed.")


def _in_words(plan: Plan) -> str:
    numbers = ", ".join(map(str, plan.removed))
    scope = "" if plan.to else " (all of rowq except its roles)"
    return f"This removes migration {numbers}{scope}, and deletes {plan.losses}."


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
        say("modified:")
        records = [{"routine": drift.routine, "problem": drift.problem} for drift in found.drift]
        print_rows(records, as_json=False, nothing="")
    _print_notices(found.notices)


def _installed(found: Status) -> str:
    if not found.installed:
        return "nothing"
    version = "" if found.rowq_version is None else f"rowq {found.rowq_version}, "
    return f"{version}migration {found.installed}"


def _print_notices(notices: tuple[str, ...]) -> None:
    """Print each notice as one line."""
    for notice in notices:
        say(f"notice: {printable(notice)}", err=True)
