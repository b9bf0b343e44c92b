"""What a migration file is made of: statements written by hand, and the files that it brings.

    from rowq.tools.migrate.steps import frozen, statement

    __depends__ = {"pg-0001-first-release"}

    statement(
        "alter table rowq.message add trace text",
        "alter table rowq.message drop column trace",
    )
    frozen(__file__)

Every file and statement goes to the server whole: nothing here splits SQL.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from yoyo import step

from rowq.tools.migrate.frozen import GRANTS, Section, brought_by, drops, files_after, number_of


class Runner(Protocol):
    """The part of a connection that a step needs."""

    def execute(self, text: str, /) -> object:
        """Run `text`, one statement or several."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A step of plain text; a callable, because yoyo prints the rows that a string returns."""

    part: Section

    def __call__(self, connection: Runner) -> None:
        """Run the text on the migration's connection."""
        if isinstance(connection, _Recorder):
            connection.parts.append(self.part)
        elif self.part.text:
            connection.execute(self.part.text)


def statement(apply: str, rollback: str) -> None:
    """Add a hand-written step to the migration file that is being read.

    Args:
        apply: what to do; it must not mind having been done already.
        rollback: how to undo it.
    """
    step(Sql(Section("statement", "", apply)), _undo(rollback))


def frozen(migration_file: str) -> None:
    """Add the files that the migration brings.

    These are the files of its script once it is released, and until then those of today's sources
    that differ from what was released before. Each is rolled back to its newest earlier text, or
    what it makes is dropped. A file outside of the folders is run by every migration and undone by
    none; a rollback runs the comments of the migration before. The rights come after every
    migration and every rollback anyway, so they are no step.

    Args:
        migration_file: the migration's own `__file__`.
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
    """Return what the steps of a migration of yoyo's would run, in their order.

    Args:
        migration: yoyo's migration.
        direction: apply, or rollback for what would undo them.
    """
    recorder = _Recorder()
    migration.process_steps(recorder, direction)
    return [part for part in recorder.parts if part.text]


class _Recorder:
    """Stands where yoyo's backend and its connection would, and keeps what would be run."""

    DatabaseError: type[Exception] = Exception
    has_transactional_ddl = True

    def __init__(self) -> None:
        self.parts: list[Section] = []
        self.connection = self

    def transaction(self) -> Any:
        """Open nothing: nothing is run."""
        return nullcontext()

    def execute(self, text: str) -> None:
        """Refuse a step that is neither a statement nor a file: a script could not hold it."""
        raise TypeError(f"a migration is made of statement() and frozen() alone: {text}")
