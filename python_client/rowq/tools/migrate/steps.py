"""The content of a migration file: handwritten statements, and SQL files.

    from rowq.tools.migrate.steps import frozen, statement

    __depends__ = {"pg-0001-first-release"}
    __transactional__ = False

    statement(
        "alter table rowq.message add trace text",
        "alter table rowq.message drop column trace",
    )
    frozen(__file__)

Files and statements are sent to the server unsplit. The command `yoyo` runs the same file. Then one
step runs the migration's script for drivers, which locks, checks and records as rowq does.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yoyo import step

from rowq.engines import TOOLS, engine_module
from rowq.tools.migrate.errors import refusals
from rowq.tools.migrate.for_tools import steps_of
from rowq.tools.migrate.frozen import GRANTS, Section, brought_by, drops, files_after, number_of
from rowq.tools.migrate.release import Recorder, Sql, read_release


@dataclass(frozen=True, slots=True)
class Whole:
    """The step that runs the whole migration on a connection of yoyo.

    It does nothing if rowq's own record shows that it is done, so yoyo can follow `rowq migrate`.
    """

    file: Path
    installs: bool

    def __call__(self, connection: Any) -> None:
        """Run the script.

        A refusal is a MigrationError, not an error of the driver: yoyo's --force ignores those, and
        would record a rollback that was refused.
        """
        if isinstance(connection, Recorder):
            return
        engine, release = self.file.parent.name, read_release(self.file.parent)
        numbered = release.get(number_of(self.file))
        ids = engine_module(engine, "status", TOOLS).Inspection(connection).ids()
        refusal = engine_module(engine, "install", TOOLS).Installer.REFUSAL
        with refusals(Exception, refusal), closing(connection.cursor()) as cursor:
            cursor.execute("rollback")
            if (numbered.id in ids) != self.installs:
                up, down = steps_of(release, numbered)
                for statement in up if self.installs else down:
                    cursor.execute(statement)


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
    step(Whole(migration, installs=True), Whole(migration, installs=False))
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
