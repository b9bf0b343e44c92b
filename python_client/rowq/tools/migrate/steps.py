"""The content of a migration file: handwritten statements, and SQL files.

    from rowq.tools.migrate.steps import frozen, statement

    __depends__ = {"pg-0001-first-release"}

    statement(
        "alter table rowq.message add trace text",
        "alter table rowq.message drop column trace",
    )
    frozen(__file__)

Files and statements are sent to the server unsplit.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from yoyo import step

from rowq.tools.migrate.frozen import GRANTS, Section, brought_by, drops, files_after, number_of


class Runner(Protocol):
    """A connection as seen by a step."""

    def execute(self, text: str, /) -> object:
        """Run `text`, one statement or several."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A step of plain text; callable, because yoyo prints the rows that a string returns."""

    part: Section

    def __call__(self, connection: Runner) -> None:
        """Run the text on the migration's connection."""
        if isinstance(connection, _Recorder):
            connection.parts.append(self.part)
        elif self.part.text:
            connection.execute(self.part.text)


def statement(apply: str, rollback: str) -> None:
    """Add a handwritten step to the migration file being read.

    Args:
        apply: the statement; it must be repeatable.
        rollback: the statement that undoes it.
    """
    step(Sql(Section("statement", "", apply)), _undo(rollback))


def frozen(migration_file: str) -> None:
    """Add the SQL files of the migration whose `__file__` is `migration_file`.

    A released migration uses the files of its script, an unreleased one the sources that differ
    from the last release. A rollback restores the earlier text of a file, or drops what the file
    creates. A file outside the folders is run by every migration and undone by none. The installer
    sets comments and privileges, so grants.sql is not a step.
    """
    migration = Path(migration_file)
    earlier = files_after(migration.parent, number_of(migration) - 1)
    for part in brought_by(migration, earlier):
        if part.name == GRANTS:
            continue
        if "/" not in part.name:
            step(Sql(part), _undo(""))
        elif part.name in earlier:
            step(Sql(part), _undo(earlier[part.name]))
        else:
            step(Sql(part), _undo(drops(part.text)))


def _undo(text: str) -> Sql:
    return Sql(Section("undo", "", text))


def recorded(migration: Any, direction: str = "apply") -> list[Section]:
    """Return what the steps of a yoyo migration would run; direction is apply or rollback."""
    recorder = _Recorder()
    migration.process_steps(recorder, direction)
    return [part for part in recorder.parts if part.text]


class _Recorder:
    """Replaces yoyo's backend and its connection, and records instead of running."""

    DatabaseError: type[Exception] = Exception
    has_transactional_ddl = True

    def __init__(self) -> None:
        self.parts: list[Section] = []
        self.connection = self

    def transaction(self) -> Any:
        """Open no transaction."""
        return nullcontext()

    def execute(self, text: str) -> None:
        """Refuse any other step: a script cannot contain it."""
        raise TypeError(f"a migration may only use statement() and frozen(): {text}")
