"""Sample releases in a copy of the sources and the migrations."""

import shutil
import subprocess
from pathlib import Path

import pytest

from rowq.contract import migrations_directory, sql_directory
from rowq.tools.migrate.frozen import migration_files, number_of, script_of
from rowq.tools.migrate.release import read_release
from rowq.tools.migrate.sources import INTERNAL, SESSION_SETTINGS, TABLES, file_units, sources_of
from sql.generate.release import SUMS, release
from sql.generate.version import write_version

NEWEST = len(migration_files(migrations_directory() / "postgres"))
"""The number of the newest migration on every engine."""
EVERY = tuple(range(1, NEWEST + 1))
"""The numbers of all migrations, as returned by migrate."""
BACK = EVERY[::-1]
"""The same as returned by rollback."""

_STANDARD = (
    "alter table rowq.queue add column if not exists note text;",
    "alter table rowq.queue drop column if exists note;",
)
# MySQL has no "if not exists" for columns.
_ON_MYSQL = """\
set @rowq_text = (
    select if(count(*) = {there}, 'alter table rowq.queue {change}', 'do 0')
    from information_schema.columns
    where table_schema = 'rowq' and table_name = 'queue' and column_name = 'note'
);
prepare rowq_change from @rowq_text;
execute rowq_change;
deallocate prepare rowq_change;"""
_ON_ORACLE = """
declare
    v_columns number;
begin
    select count(*) into v_columns
    from user_tab_columns c
    where c.table_name = 'ROWQ_QUEUE'
      and c.column_name = 'NOTE';
    if v_columns = {there} then
        execute immediate 'alter table rowq_queue {change}';
    end if;
end;
/
"""
COLUMN = {
    "postgres": _STANDARD,
    "mysql": (
        _ON_MYSQL.format(there=0, change="add column note text"),
        _ON_MYSQL.format(there=1, change="drop column note"),
    ),
    "sqlserver": (
        "if col_length(N'rowq.queue', N'note') is null"
        " alter table rowq.queue add note nvarchar(100) null;",
        "if col_length(N'rowq.queue', N'note') is not null"
        " alter table rowq.queue drop column note;",
    ),
    "oracle": (
        _ON_ORACLE.format(there=0, change="add (note varchar2(100 char))"),
        _ON_ORACLE.format(there=1, change="drop (note)"),
    ),
}
"""For each engine, statements that add an unused column and drop it."""
_MIGRATION = '''
"""A sample release of a test."""

from rowq.tools.migrate.steps import frozen, statement

__depends__ = {{"{before}"}}
__transactional__ = False
__rowq_version__ = "{version}"

{statement}frozen(__file__)
'''
_STATEMENT = """statement(
    {apply!r},
    {rollback!r},
)
"""
_RENAMED = {
    "postgres": {"rowq.version(": "rowq.internal_second("},
    "mysql": {"procedure if exists rowq.version": "procedure if exists rowq.internal_second",
              "procedure rowq.version(": "procedure rowq.internal_second("},
    "sqlserver": {"procedure rowq.Version\n": "procedure rowq.InternalSecond\n"},
    "oracle": {"procedure version(": "procedure internal_second(",
               "end version;": "end internal_second;"},
}  # fmt: skip
"""For each engine, edits that turn the routine `version` into a helper `second`."""
SECOND = "internal/second"
"""The unit that `change_sources` adds."""


def copied(folder: Path, engine: str) -> Path:
    """Copy an engine's sources and migrations into a folder, and return its migrations."""
    leave = shutil.ignore_patterns("__pycache__")
    for room in (sql_directory(), migrations_directory()):
        shutil.copytree(room / engine, folder / room.name / engine, ignore=leave)
    shutil.copy(sql_directory() / "contract.toml", folder / "sql")
    return folder / "migrations" / engine


def copied_without_history(folder: Path, engine: str) -> Path:
    """Copy them without releases: the first migration installs today's sources."""
    migrations = copied(folder, engine)
    first, *later = migration_files(migrations)
    for path in (script_of(first), *later, *map(script_of, later), migrations / SUMS):
        path.unlink(missing_ok=True)
    return migrations


def checkout_without_history(folder: Path, engines: list[str]) -> Path:
    """Create a repository with the files of a release, but no release; return its root."""
    for engine in engines:
        copied_without_history(folder, engine)
    for name in ("pyproject.toml", "python_client/rowq/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sql_directory().parent / name, folder / name)
    write_version(folder, read_release(folder / "migrations" / engines[0]).get(1).rowq_version)
    changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A queue.\n"
    (folder / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    (folder / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(root: Path) -> None:
    """Commit everything in a checkout."""
    git(root, "add", "--all")
    author = (
        "-c",
        "user.name=test",
        "-c",
        "user.email=test@localhost",
        "-c",
        "commit.gpgsign=false",
    )
    git(root, *author, "commit", "--quiet", "--message", "all")


def git(root: Path, *words: str) -> str:
    """Run git in a checkout and return its output."""
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def use_released(migrations: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Release the newest migration of a copy and make rowq use the copy; return it.

    Later changes of the copy belong to the next migration.
    """
    release(migrations)
    monkeypatch.setattr(
        "rowq.tools.migrate.release.migrations_directory", lambda: migrations.parent
    )
    return migrations


def begin_next(
    migrations: Path, slug: str, version: str = "99.0.0", statement: tuple[str, str] | None = None
) -> Path:
    """Write the file of an engine's next migration, with a statement and its undo."""
    newest = migration_files(migrations)[-1]
    name = f"{newest.stem.split('-')[0]}-{number_of(newest) + 1:04d}-{slug}.py"
    apply, rollback = statement or ("", "")
    text = _MIGRATION.format(
        before=newest.stem,
        version=version,
        statement=_STATEMENT.format(apply=apply, rollback=rollback) if statement else "",
    )
    (migrations / name).write_text(text.lstrip(), encoding="utf-8")
    return migrations / name


def change_sources(migrations: Path) -> None:
    """Change the routine `version` in an engine's sources, and add a helper to a family."""
    folder = sources_of(migrations)
    routine = folder / "routines" / "version.sql"
    text = routine.read_text(encoding="utf-8")
    assert "-- version   1\n" in text
    routine.write_text(text.replace("-- version   1\n", "-- version   2\n"), encoding="utf-8")
    helper = text
    for old, new in _RENAMED[migrations.name].items():
        assert old in helper
        helper = helper.replace(old, new)
    family = folder / "internal" / "text.sql"
    others = family.read_text(encoding="utf-8")
    helper = helper.replace(SESSION_SETTINGS, "")
    family.write_text(f"{others}\n{helper}", encoding="utf-8")


def remove_unit(folder: Path, name: str) -> None:
    """Remove a unit, such as internal/second, from its file."""
    for path in (folder / TABLES, *sorted((folder / INTERNAL).glob("*.sql"))):
        text = path.read_text(encoding="utf-8")
        found = file_units(path.relative_to(folder).as_posix(), text)
        if name in found:
            unit = found[name].replace(SESSION_SETTINGS, "")
            assert text.count(unit) == 1
            path.write_text(text.replace(unit, ""), encoding="utf-8")
            return
    raise AssertionError(name)


def change_everything(migrations: Path, version: str = "0.2.0") -> None:
    """Begin a release with a new column, a new helper and a changed routine."""
    change_sources(migrations)
    begin_next(migrations, "second", version, COLUMN[migrations.name])
