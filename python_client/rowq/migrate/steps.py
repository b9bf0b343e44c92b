"""What a migration file is made of: statements written by hand, and frozen copies.

    from rowq.migrate.steps import frozen, statement

    __depends__ = {"pg-0001-first-release"}

    statement(
        "alter table rowq.message add trace text",
        "alter table rowq.message drop column trace",
    )
    frozen(__file__)

Every file and statement goes to the server whole: nothing here splits SQL.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from yoyo import step

from rowq.migrate.frozen import GRANTS, drops, newest_copies, order, read


class Runner(Protocol):
    """The part of a connection that a step needs."""

    def execute(self, text: str, /) -> object:
        """Run `text`, one statement or several."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A step of plain text; a callable, because yoyo prints the rows that a string returns."""

    text: str

    def __call__(self, connection: Runner) -> None:
        """Run the text on the migration's connection."""
        if self.text:
            connection.execute(self.text)


def statement(apply: str, rollback: str) -> None:
    """Add a hand-written step to the migration file that is being read.

    Args:
        apply: what to do; it must not mind having been done already.
        rollback: how to undo it.
    """
    step(Sql(apply), Sql(rollback))


def frozen(migration_file: str) -> None:
    """Add the migration's frozen copies, each rolled back to its newest earlier copy or dropped.

    The rights come after every migration and every rollback anyway, so they are no step.

    Args:
        migration_file: the migration's own `__file__`.
    """
    here = Path(migration_file)
    number = int(here.stem.split("-")[1])
    folder = here.parent / f"{number:04d}"
    earlier = newest_copies(here.parent, number - 1)
    for relative in order(folder):
        if relative != GRANTS:
            text = read(folder / relative)
            undo = read(earlier[relative]) if relative in earlier else drops(text)
            step(Sql(text), Sql(undo))
