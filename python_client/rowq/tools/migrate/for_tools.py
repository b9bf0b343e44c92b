"""Migrations for other tools: plain scripts for drivers, Flyway files, Alembic revisions.

They do what `migrate` does, with the same bookkeeping.
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

The SQL is in the two files next to this one, for {engine}. They record the migration for `rowq
status` and `rowq migrate`. Written by: rowq sql --engine {engine} --alembic
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
    """Install this revision."""
    _run(".up.sql")


def downgrade() -> None:
    """Remove this revision; refused if that would delete messages."""
    _run(".down.sql")


def _run(suffix: str) -> None:
    if op.get_context().as_sql:
        raise CommandError("rowq requires a connection; for a script use: rowq sql")
    text = Path(__file__).with_suffix(suffix).read_text(encoding="utf-8")
    bind = op.get_bind()
    for statement in text.split(SEPARATOR) if SEPARATOR else [text]:
        if bind.dialect.driver == "asyncpg":
            # SQLAlchemy would prepare the text, which fails with several statements.
            bind.connection.dbapi_connection.run_async(
                lambda driver, sql=statement: driver.execute(sql)
            )
        else:
            bind.exec_driver_sql(statement, execution_options={{"no_parameters": True}})
'''


class FileInTheWayError(RowqError):
    """A file exists with other content; nothing was written."""


class Steps(NamedTuple):
    """Statements for a driver that install a migration, and those that roll it back."""

    up: list[str]
    down: list[str]


def plain_script(engine: str, from_number: int = 0, *, with_owner: bool = True) -> str:
    """Return the migrations as a script for a driver, without client commands.

    The first lines say how to run it. On PostgreSQL it is one string for one transaction. On the
    other engines a line `-- [end of statement]` separates two statements.

    Args:
        engine: name of the engine, such as postgres.
        from_number: the installed migration; only later ones are included.
        with_owner: as for `script`.

    Raises:
        UnknownMigration: the migration does not exist, or is the last one.
        EngineUnknown: the engine does not exist.
    """
    release = release_for(engine)
    client = _client(release)
    return client.SEPARATOR.join(
        client.plain(numbered.heading, _parts(release, numbered, with_owner=with_owner))
        for numbered in release.after(from_number)
    )


def flyway_files(engine: str, from_number: int = 0, *, with_owner: bool = True) -> dict[str, str]:
    """Return name and text of a Flyway file for each migration.

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
    """Return name and text of an Alembic revision and its two scripts for each migration.

    Args, Raises: as for `plain_script`.
    """
    release = release_for(engine)
    client = _client(release)
    files: dict[str, str] = {}
    for numbered in release.after(from_number):
        name = _revision(numbered.number)
        back = f"{numbered.heading}, rolled back"
        undone = _undone(release, numbered, with_owner=with_owner)
        files[f"{name}.py"] = _revision_file(release, numbered)
        files[f"{name}.up.sql"] = client.plain(
            numbered.heading, _parts(release, numbered, with_owner=with_owner)
        )
        files[f"{name}.down.sql"] = client.plain(back, undone)
    return files


def plain_steps(engine: str, number: int) -> Steps:
    """Return the statements for a driver that install a migration, and those that roll it back.

    On PostgreSQL each of the two is one string for one transaction.

    Args:
        engine: name of the engine, such as postgres.
        number: the migration's number, from 1.

    Raises:
        UnknownMigration: the migration does not exist.
        EngineUnknown: the engine does not exist.
    """
    release = release_for(engine)
    return steps_of(release, release.get(number))


def steps_of(release: Release, numbered: Numbered) -> Steps:
    """Return the same of a migration of a release."""
    client = _client(release)
    back = f"{numbered.heading}, rolled back"
    up = client.plain(numbered.heading, _parts(release, numbered, with_owner=True))
    down = client.plain(back, _undone(release, numbered, with_owner=True))
    separator = client.SEPARATOR
    return Steps(*(text.split(separator) if separator else [text] for text in (up, down)))


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files into a folder, which is created if missing; return the new ones.

    An existing file is never changed, because the tool may have run it.

    Raises:
        FileInTheWayError: a file exists with other content.
    """
    paths = {folder / name: text for name, text in files.items()}
    new = [path for path in paths if not path.exists()]
    for path in paths.keys() - set(new):
        if path.read_text(encoding="utf-8") != paths[path]:
            raise FileInTheWayError(
                f"{path} exists with other content; nothing was written."
                " Use --from N to write only migrations after N"
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
