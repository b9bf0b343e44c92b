"""Install, upgrade and roll back: the same for every engine."""

from dataclasses import dataclass

from rowq.engines import TOOLS, engine_for_url, engine_module
from rowq.tools.migrate.client_script import BaseScript
from rowq.tools.migrate.errors import UnknownMigration
from rowq.tools.migrate.inspection import BaseInspection, Losses
from rowq.tools.migrate.installer import BaseInstaller
from rowq.tools.migrate.release import Release, release_for


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migrate or rollback did.

    Attributes:
        applied: numbers installed, in order.
        rolled_back: numbers removed, in order.
        installed: the number that the database has now, 0 for none.
        notices: what was left out, and what to do about it.
    """

    applied: tuple[int, ...]
    rolled_back: tuple[int, ...]
    installed: int
    notices: tuple[str, ...]


def migrate(url: str, to: int | None = None) -> Migrated:
    """Install rowq in a database, or upgrade it; harmless when there is nothing to do.

    Any number of callers may do this at once. After a crash at any moment run it again: the
    migration that was running is not there, or on an engine whose DDL commits only in part.

    Args:
        url: the database's URL.
        to: the highest migration to install; all by default.

    Raises:
        UnknownMigration: there is no migration `to`, or the database is already beyond it.
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
                f"{UnknownMigration.number} unknown_migration: the database has"
                f" {installer.installed} already, which is beyond {to}",
                f"To go back: rowq rollback --to {to}",
            )
        return Migrated(tuple(applied), (), installer.installed, tuple(installer.notices))


def rollback(url: str, to: int | None = None, *, force: bool = False) -> Migrated:
    """Go back to an earlier migration; 0 removes rowq with everything in it, except its roles.

    Args:
        url: the database's URL.
        to: the number to go back to; one less than what is installed by default.
        force: also when messages are thrown away.

    Raises:
        MessagesLeft: there are messages, archived ones perhaps, that it would throw away.
        UnknownMigration: there is no migration `to`.
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
    """What a rollback would do.

    Attributes:
        installed: the number that the database has, 0 for none.
        to: the number that it would have then.
        removed: numbers that would be removed, in order.
        losses: what would be thrown away with them.
    """

    installed: int
    to: int
    removed: tuple[int, ...]
    losses: Losses


def plan_rollback(url: str, to: int | None = None) -> Plan:
    """Say what a rollback would do, and change nothing.

    Args:
        url: the database's URL.
        to: as for rollback.

    Raises:
        UnknownMigration: there is no migration `to`.
        ForeignSchema, MissingPrivilege, SchemaNewer, CannotConnect: as status and migrate.
    """
    engine = engine_for_url(url)
    release = release_for(engine.name)
    if to:
        release.get(to)
    connection = engine.connect(url)
    try:
        look: BaseInspection = engine_module(engine.name, "status", TOOLS).Inspection(connection)
        look.begin()
        installed = release.installed(look.installed_ids() if look.owner() else [])
        target = max(installed - 1, 0) if to is None else min(to, installed)
        removed = tuple(range(installed, target, -1))
        loses = any(release.get(number).loses_messages for number in removed)
        return Plan(installed, target, removed, look.losses() if loses else Losses())
    finally:
        engine.close(connection)


def script(engine: str, from_number: int = 0, *, with_owner: bool = True) -> str:
    """Return what migrate does as a complete script for the engine's own client.

    That is the script of each migration, one after the other; a released one never changes.

    Args:
        engine: name of the engine, such as postgres.
        from_number: what the database has already; only what comes after it is printed.
        with_owner: MariaDB and MySQL only: let the routines run as rowq_owner@localhost, an account
            that the script makes, and not as the account that runs the script.

    Raises:
        UnknownMigration: there is no migration of that number, or nothing comes after it.
        EngineUnknown: rowq has no engine of this name.
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
