"""Migrations for other tools: a plain script for drivers, files for Flyway, revisions for Alembic.

They do what `migrate` does, with the same bookkeeping, whatever runs them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rowq.engines import TOOLS, engine_module
from rowq.errors import RowqError
from rowq.tools.migrate.client_script import BaseScript
from rowq.tools.migrate.frozen import Section, split
from rowq.tools.migrate.release import Numbered, Release, release_for

_REVISION = '''"""{heading}.

The SQL is in the two files beside this one. They are for {engine}, do the bookkeeping of `rowq
status` and `rowq migrate`, and were written by: rowq sql --engine {engine} --alembic
"""

from pathlib import Path

from alembic import op
from alembic.util import CommandError

revision = "{revision}"
down_revision = {before}
branch_labels = {labels}
depends_on = None

SEPARATOR = {separator}


def upgrade() -> None:
    """Install what this revision brings."""
    _run(".up.sql")


def downgrade() -> None:
    """Remove it; refused where messages would be thrown away."""
    _run(".down.sql")


def _run(suffix: str) -> None:
    if op.get_context().as_sql:
        raise CommandError("rowq needs a connection; for a script take: rowq sql")
    text = Path(__file__).with_suffix(suffix).read_text(encoding="utf-8")
    bind = op.get_bind()
    for statement in text.split(SEPARATOR) if SEPARATOR else [text]:
        if bind.dialect.driver == "asyncpg":
            # SQLAlchemy would prepare it, and many statements cannot be prepared at once.
            bind.connection.dbapi_connection.run_async(
                lambda driver, sql=statement: driver.execute(sql)
            )
        else:
            bind.exec_driver_sql(statement, execution_options={{"no_parameters": True}})
'''


class FileInTheWayError(RowqError):
    """A file is there already with another content; nothing was written."""


class Steps(NamedTuple):
    """What installs a migration, and what takes it back: statements for a driver, in order."""

    up: list[str]
    down: list[str]


def plain_script(engine: str, from_number: int = 0, *, with_owner: bool = True) -> str:
    """Return what migrate does for a driver: without commands of the engine's own client.

    The first lines say how it is run. On PostgreSQL it is one string, to be run in one transaction;
    on the other engines a line `-- [end of statement]` stands between two statements.

    Args:
        engine: name of the engine, such as postgres.
        from_number: what the database has already; only what comes after it is printed.
        with_owner: as for `script`.

    Raises:
        UnknownMigration: there is no migration of that number, or nothing comes after it.
        EngineUnknown: rowq has no engine of this name.
    """
    release = release_for(engine)
    client = _client(release)
    return client.SEPARATOR.join(
        client.plain(numbered.heading, _parts(release, numbered, with_owner=with_owner))
        for numbered in release.after(from_number)
    )


def flyway_files(engine: str, from_number: int = 0, *, with_owner: bool = True) -> dict[str, str]:
    """Return name and text of a file for Flyway for each migration.

    Args, Raises: as for `plain_script`.
    """
    release = release_for(engine)
    return {
        f"V{numbered.number:04d}__rowq_{numbered.rowq_version.replace('.', '_')}.sql": _client(
            release
        ).flyway(numbered.heading, _parts(release, numbered, with_owner=with_owner))
        for numbered in release.after(from_number)
    }


def alembic_files(engine: str, from_number: int = 0, *, with_owner: bool = True) -> dict[str, str]:
    """Return name and text of a revision for Alembic for each migration, and of its two scripts.

    Args, Raises: as for `plain_script`.
    """
    release = release_for(engine)
    client = _client(release)
    files: dict[str, str] = {}
    for numbered in release.after(from_number):
        name = _revision(numbered.number)
        back = f"{numbered.heading}, taken back"
        undone = _undone(release, numbered, with_owner=with_owner)
        files[f"{name}.py"] = _revision_file(release, numbered)
        files[f"{name}.up.sql"] = client.plain(
            numbered.heading, _parts(release, numbered, with_owner=with_owner)
        )
        files[f"{name}.down.sql"] = client.plain(back, undone)
    return files


def plain_steps(engine: str, number: int) -> Steps:
    """Return the statements for a driver that install one migration, and those that undo that.

    On PostgreSQL each of the two is one string, to be run in one transaction.

    Args:
        engine: name of the engine, such as postgres.
        number: the migration's number, from 1.

    Raises:
        UnknownMigration: there is no migration of that number.
        EngineUnknown: rowq has no engine of this name.
    """
    release = release_for(engine)
    client = _client(release)
    numbered = release.get(number)
    back = f"{numbered.heading}, taken back"
    up = client.plain(numbered.heading, _parts(release, numbered, with_owner=True))
    down = client.plain(back, _undone(release, numbered, with_owner=True))
    separator = client.SEPARATOR
    return Steps(*(text.split(separator) if separator else [text] for text in (up, down)))


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files into a folder, which is made where it is missing; return those that are new.

    A tool remembers what it has run, so a file that is there is never changed.

    Raises:
        FileInTheWayError: one is there with another content.
    """
    paths = {folder / name: text for name, text in files.items()}
    new = [path for path in paths if not path.exists()]
    for path in paths.keys() - set(new):
        if path.read_text(encoding="utf-8") != paths[path]:
            raise FileInTheWayError(
                f"{path} is there already, with another content; nothing was written. A migration"
                " that was run must stay as it is: write what comes after it with --from"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        path.write_text(paths[path], encoding="utf-8", newline="\n")
    return new


def _client(release: Release) -> BaseScript:
    client: BaseScript = engine_module(release.folder.name, "script", TOOLS).SCRIPT
    return client


def _parts(release: Release, numbered: Numbered, *, with_owner: bool) -> list[Section]:
    script = release.script(numbered.number)
    if not with_owner:
        script = _client(release).without_owner(release, script)
    return split(script)[1]


def _undone(release: Release, numbered: Numbered, *, with_owner: bool) -> Iterator[Section]:
    client = _client(release)
    for part in client.undone(release, numbered):
        if with_owner:
            yield part
        elif part.name not in client.FOR_OWNER:
            yield replace(part, text=client.source_form(part.text))


def _revision(number: int) -> str:
    return f"rowq_{number:04d}"


def _revision_file(release: Release, numbered: Numbered) -> str:
    is_first = numbered.number == 1
    separator = _client(release).SEPARATOR
    return _REVISION.format(
        heading=numbered.heading,
        engine=release.folder.name,
        revision=_revision(numbered.number),
        before="None" if is_first else f'"{_revision(numbered.number - 1)}"',
        labels='("rowq",)' if is_first else "None",
        separator=f'"{separator.strip()}\\n"' if separator else '""',
    )
