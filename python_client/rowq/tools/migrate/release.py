"""The migrations of an engine in this installation of rowq."""

import threading
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yoyo.migrations import Migration

from rowq.contract import migrations_directory
from rowq.engines import TOOLS, engine_module, engines
from rowq.errors import EngineUnknown
from rowq.tools.migrate.errors import MigrationError, SchemaNewer, UnknownMigration
from rowq.tools.migrate.frozen import (
    SCRIPTS,
    Section,
    files_after,
    is_released,
    migration_files,
    number_of,
    script_of,
)
from rowq.tools.migrate.sources import read

# yoyo keeps all migrations of the process in one dictionary, and resolves __depends__ there.
_reading = threading.Lock()


@dataclass(frozen=True, slots=True)
class Numbered:
    """One migration with its number; `migration` is yoyo's."""

    number: int
    migration: Any

    @property
    def id(self) -> str:
        """The id recorded in the database, such as pg-0001-first-release."""
        return str(self.migration.id)

    @property
    def file(self) -> Path:
        """The migration's file."""
        return Path(self.migration.path)

    @property
    def rowq_version(self) -> str:
        """The version of rowq that this migration installs."""
        return str(self.migration.module.__rowq_version__)

    @property
    def heading(self) -> str:
        """The purpose of its script."""
        before = self.number - 1
        action = f"upgrade from {before} to" if before else "install"
        return f"rowq {self.rowq_version}: {action} {self.number}"

    @property
    def loses_messages(self) -> bool:
        """Whether rolling it back deletes messages."""
        return bool(getattr(self.migration.module, "__loses_messages__", False))


@dataclass(frozen=True, slots=True)
class Release:
    """All migrations of an engine, lowest number first."""

    folder: Path
    migrations: tuple[Numbered, ...]
    _files: dict[int, dict[str, str]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def newest(self) -> int:
        """The highest number."""
        return self.migrations[-1].number

    def get(self, number: int) -> Numbered:
        """Return the migration of a number; raise UnknownMigration."""
        if not 1 <= number <= self.newest:
            raise UnknownMigration(
                f"{UnknownMigration.number} unknown_migration: migration must be between 1 and"
                f" {self.newest}, got {number}"
            )
        return self.migrations[number - 1]

    def after(self, number: int) -> tuple[Numbered, ...]:
        """Return the migrations after this number, 0 for all; raise UnknownMigration."""
        if not 0 <= number < self.newest:
            raise UnknownMigration(
                f"{UnknownMigration.number} unknown_migration: migration must be between 0 and"
                f" {self.newest - 1}, got {number}; the newest is {self.newest}"
            )
        return self.migrations[number:]

    def ids(self, number: int) -> list[str]:
        """Return the ids of the migrations up to this number."""
        return [numbered.id for numbered in self.migrations[:number]]

    def installed(self, ids: list[str]) -> int:
        """Return the highest number among ids recorded in a database, 0 for none.

        Raises:
            SchemaNewer: this rowq does not know an id.
        """
        numbers = {known.id: known.number for known in self.migrations}
        if unknown := sorted(set(ids) - numbers.keys()):
            raise SchemaNewer(
                f"{SchemaNewer.number} schema_newer: migration {unknown[-1]} is newer than this"
                " rowq; upgrade rowq"
            )
        return max((numbers[known] for known in ids), default=0)

    def files(self, number: int) -> dict[str, str]:
        """Return path and text of every SQL file after a migration."""
        if number not in self._files:
            self._files[number] = files_after(self.folder, number)
        return self._files[number]

    def script(self, number: int) -> str:
        """Return a migration's released script, or the one that would be released now."""
        numbered = self.get(number)
        if is_released(numbered.file):
            return read(script_of(numbered.file))
        return str(engine_module(self.folder.name, "script", TOOLS).SCRIPT.script(self, numbered))

    def text(self, name: str) -> str:
        """Return an engine's script beside the migrations, such as preflight.sql."""
        return read(self.folder / SCRIPTS / name)


def read_release(folder: Path) -> Release:
    """Read all migrations of migrations/<engine>; raise MigrationError unless numbered from 1."""
    paths = migration_files(folder)
    with _reading:
        loaded = [Migration(path.stem, str(path), str(folder)) for path in paths]
        for migration in loaded:
            migration.load()
    chain = tuple(Numbered(number_of(Path(m.path)), m) for m in loaded)
    for position, numbered in enumerate(chain, start=1):
        needs = {before.migration for before in chain[position - 2 : position - 1]}
        if numbered.number != position or numbered.migration.depends != needs:
            raise MigrationError(f"{numbered.id} must be number {position} and depend on the last")
    if not chain:
        raise MigrationError(f"no migrations in {folder}")
    return Release(folder, chain)


def release_for(engine: str) -> Release:
    """Return the migrations for an engine, such as postgres; raise EngineUnknown."""
    return read_release(migrations_directory() / named(engine))


def named(word: str) -> str:
    """Return the engine with this name or URL scheme; raise EngineUnknown."""
    for engine in engines():
        if word == engine.name or word in engine.schemes:
            return engine.name
    known = ", ".join(engine.name for engine in engines())
    raise EngineUnknown(f"engine must be one of {known}, got {word!r}")


class Recorder:
    """Replaces yoyo's backend and its connection, and records instead of running.

    Attributes:
        parts: the sections of the steps so far.
    """

    DatabaseError: type[Exception] = Exception
    has_transactional_ddl = True

    def __init__(self) -> None:
        self.parts: list[Section] = []
        self.connection = self

    def disable_transactions(self) -> Any:
        """Open no transaction."""
        return nullcontext()

    def execute(self, text: str) -> None:
        """Refuse any other step: a script cannot contain it."""
        raise TypeError(f"a migration may only use statement() and frozen(): {text}")


@dataclass(frozen=True, slots=True)
class Sql:
    """A step of plain text; if yoyo runs the migration, `Whole` has run it."""

    part: Section

    def __call__(self, connection: object) -> None:
        """Record the section."""
        if isinstance(connection, Recorder) and self.part.text:
            connection.parts.append(self.part)


def recorded(migration: Any, direction: str = "apply") -> list[Section]:
    """Return the sections of a yoyo migration; direction is apply or rollback."""
    recorder = Recorder()
    migration.process_steps(recorder, direction)
    return recorder.parts
