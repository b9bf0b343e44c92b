"""Install, upgrade and roll back, on every engine."""

from dataclasses import dataclass

from rowq.engines import TOOLS, engine_for_url, engine_module
from rowq.tools.migrate.client_script import BaseScript
from rowq.tools.migrate.errors import UnknownMigration
from rowq.tools.migrate.inspection import BaseInspection, Losses
from rowq.tools.migrate.installer import BaseInstaller
from rowq.tools.migrate.release import Release, release_for


@dataclass(frozen=True, slots=True)
class Migrated:
    """Result of a migrate or rollback.

    Attributes:
        applied: numbers installed, in order.
        rolled_back: numbers removed, in order.
        installed: the number installed now, 0 for none.
        notices: what was left out, and what to do.
    """

    applied: tuple[int, ...]
    rolled_back: tuple[int, ...]
    installed: int
    notices: tuple[str, ...]


def migrate(url: str, to: int | None = None) -> Migrated:
    """Install or upgrade rowq in a database.

    Any number of callers may do this at once. After a crash run it again: the interrupted migration
    is not installed, or on engines whose DDL commits, only in part.

    Args:
        url: the database's URL.
        to: the last migration to install. Default: all.

    Raises:
        UnknownMigration: migration `to` does not exist, or a later one is installed.
        MigrationError: any other refusal; nothing was changed. See rowq.tools.migrate.errors.
        CannotConnect: the database could not be reached.
    """
    release = release_for(engine_for_url(url).name)
    target = release.newest if to is None else release.get(to).number
    applied: list[int] = []
    with _installer(url, release) as installer:
        while (number := installer.step_up(target)) is not None:
            applied.append(number)
        if to is not None and installer.installed > to:
            raise UnknownMigration(
                f"{UnknownMigration.number} unknown_migration: migration {installer.installed} is"
                f" already installed, got {to}",
                f"To roll back: rowq rollback --to {to}",
            )
        return Migrated(tuple(applied), (), installer.installed, tuple(installer.notices))


def rollback(url: str, to: int | None = None, *, force: bool = False) -> Migrated:
    """Roll back to an earlier migration; 0 removes rowq with everything in it, except its roles.

    Args:
        url: the database's URL.
        to: the number to roll back to. Default: one less than installed.
        force: delete messages if necessary.

    Raises:
        MessagesLeft: it would delete unfinished or archived messages.
        UnknownMigration: migration `to` does not exist.
        MigrationError, CannotConnect: as migrate.
    """
    release = release_for(engine_for_url(url).name)
    target = to if to in (None, 0) else release.get(to or 0).number
    removed: list[int] = []
    with _installer(url, release) as installer:
        while True:
            number, target = installer.step_down(target, force=force)
            removed += [] if number is None else [number]
            if number is None or number - 1 == target:
                break
        return Migrated((), tuple(removed), installer.installed, tuple(installer.notices))


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a rollback.

    Attributes:
        installed: the number installed now, 0 for none.
        to: the number after the rollback.
        removed: numbers to remove, in order.
        losses: what would be deleted.
    """

    installed: int
    to: int
    removed: tuple[int, ...]
    losses: Losses


def plan_rollback(url: str, to: int | None = None) -> Plan:
    """Return what a rollback would do, without changing anything.

    Args:
        url: the database's URL.
        to: as for rollback.

    Raises:
        UnknownMigration: migration `to` does not exist.
        ForeignSchema, MissingPrivilege, SchemaNewer, CannotConnect: as status and migrate.
    """
    engine = engine_for_url(url)
    release = release_for(engine.name)
    if to:
        release.get(to)
    connection = engine.connect(url)
    try:
        inspection: BaseInspection = engine_module(engine.name, "status", TOOLS).Inspection(
            connection
        )
        installed = release.installed(inspection.ids())
        target = max(installed - 1, 0) if to is None else min(to, installed)
        removed = tuple(range(installed, target, -1))
        loses = any(release.get(number).loses_messages for number in removed)
        return Plan(installed, target, removed, inspection.losses() if loses else Losses())
    finally:
        engine.close(connection)


def installed_ids(url: str) -> list[str]:
    """Return the ids of the migrations installed in a database; raise as `status` does."""
    engine = engine_for_url(url)
    connection = engine.connect(url)
    try:
        ids: list[str] = engine_module(engine.name, "status", TOOLS).Inspection(connection).ids()
        return ids
    finally:
        engine.close(connection)


def script(engine: str, from_number: int = 0, *, with_owner: bool = True) -> str:
    """Return the migrations as a script for the engine's own client.

    It is the scripts of all migrations; a released one never changes.

    Args:
        engine: name of the engine, such as postgres.
        from_number: the installed migration; only later ones are included.
        with_owner: MariaDB and MySQL: create the account rowq_owner@localhost, and let the routines
            run as that account, not as the account that runs the script.

    Raises:
        UnknownMigration: the migration does not exist, or is the last one.
        EngineUnknown: the engine does not exist.
    """
    release = release_for(engine)
    client: BaseScript = engine_module(release.folder.name, "script", TOOLS).SCRIPT
    scripts = [release.script(each.number) for each in release.after(from_number)]
    if not with_owner:
        scripts = [client.without_owner(release, text) for text in scripts]
    return "".join(scripts)


def _installer(url: str, release: Release) -> BaseInstaller:
    installer: BaseInstaller = engine_module(engine_for_url(url).name, "install", TOOLS).Installer(
        url, release
    )
    return installer
