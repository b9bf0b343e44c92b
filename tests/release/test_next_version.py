"""Follow the maintainers' page in a clone: a release, the next version, and its rollback."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rowq.tools import migrate
from rowq.tools.engines.mysql.install import Connection
from rowq.tools.migrate.frozen import is_released, migration_files
from rowq.tools.migrate.release import read_release, recorded
from rowq.tools.migrate.sources import sources
from sql.generate.release import SUMS
from sql.generate.version import engines_of, released_versions, version_of
from tests.engines.base import Server
from tests.helpers.next_version import REMARK, ROUTINE, add_statements, change
from tests.helpers.one_message import works
from tests.helpers.releases import NEWEST, commit, git
from tests.static.sources import ENGINES, ROOT

pytestmark = pytest.mark.slow("makes the next version in a clone", ci=False)

PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
LEADING = ("tests/static/test_compatible.py", "tests/static/test_generated.py")
"""The tests that report missing parts first."""
STATIC = (
    *LEADING,
    *(f"tests/static/test_{name}.py" for name in ("comments", "contract", "headers", "names")),
    "tests/static/test_frozen.py::test_newest_migration_yields_the_sources_byte_by_byte",
    "tests/static/test_frozen.py::test_released_files_never_change",
    "tests/static/test_release.py::test_version_is_the_same_everywhere",
)
"""The tests that compare routines, tables and migrations with the contract."""
COLUMNS = (
    "select table_name, ordinal_position, column_name, data_type, is_nullable"
    " from information_schema.columns where table_schema = 'rowq'"
    " and table_name = 'queue' order by 1, 2"
)


class Clone:
    """A copy of this checkout in its own repository, with this checkout's .venv."""

    def __init__(self, root: Path) -> None:
        self.root = root
        words = ("-z", "--cached", "--others", "--exclude-standard")
        for name in git(ROOT, "ls-files", *words).split("\0"):
            if name and (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, root / name)
        git(root, "init", "--quiet")
        commit(root)
        own, there = root / ".venv", Path(sys.prefix)
        own.mkdir()
        for name in ("bin", "lib", "pyvenv.cfg"):
            (own / name).symlink_to(there / name)
        # Keep make from updating .venv when pyproject.toml is newer.
        for name in ("dev", "release", "tsql", "plsql", "npm", "mariadb", "mysql", "odbc"):
            (own / f".stamp-{name}").touch()
            os.utime(own / f".stamp-{name}", (time.time() + 86400,) * 2)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a program in the clone."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "python_client")}
        return subprocess.run(
            words, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def does(self, *words: str) -> str:
        """Run a program in the clone, require success, and return its output."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def tests(self, names: Sequence[str], *words: str) -> "subprocess.CompletedProcess[str]":
        """Run tests without a database."""
        options = ("-q", "-p", "no:cacheprovider", "-n", "0", *words)
        return self.run(str(self.root / ".venv/bin/python"), "-m", "pytest", *options, *names)

    def generate(self) -> str:
        """Do what make generate does."""
        return self.does(str(self.root / ".venv/bin/python"), "-m", "sql.generate")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Return a clone with a released version and the next one begun."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    changelog = clone.root / "CHANGELOG.md"
    if version_of(clone.root) not in released_versions(changelog.read_text(encoding="utf-8")):
        said = clone.does("make", "release")
        assert f"CHANGELOG.md: {version_of(clone.root)} - 20" in said
        commit(clone.root)
    said = clone.does("make", "next", "VERSION=99.0.0", "NAME=a-note")
    for migrations in engines_of(clone.root):
        newest = migration_files(migrations)[-1]
        assert f"{newest.relative_to(clone.root)}: written" in said
        assert newest.stem.endswith("-a-note")
    return clone


@pytest.fixture(scope="session")
def next_version(clone: Clone) -> Clone:
    """Add a setting, its routine and column; check that the tests report what is missing."""
    change(clone.root)
    missing = clone.tests(LEADING, "-k", "next_version or file_is_fresh")
    assert missing.returncode == 1
    for engine in ENGINES:
        assert f"tables/queue has changed, but {newest_of(clone, engine).name}" in (missing.stdout)
    assert "run: make generate" in missing.stdout
    add_statements(clone.root)
    clone.generate()
    done = clone.tests(STATIC)
    assert done.returncode == 0, done.stdout
    return clone


def newest_of(clone: Clone, engine: str) -> Path:
    """Return an engine's newest migration in a clone."""
    return migration_files(clone.root / "migrations" / engine)[-1]


def test_page_names_the_commands_in_order() -> None:
    commands = re.findall(r"^make [a-z]+|^git add", PAGE, re.MULTILINE)
    assert commands == [
        *("make next", "make release", "make verify", "git add", "make dist", "make test")
    ]


@pytest.mark.timeout(300)
def test_second_release_and_dist_are_refused(clone: Clone) -> None:
    done = clone.run("make", "release")
    assert done.returncode
    assert "Nothing was released:" in done.stderr
    assert "the tree is not clean" in done.stderr
    said = clone.does("make", "dist")
    assert "for testing only, do not publish: 99.0.0 is not released; run make release" in said
    assert "rowq-99.0.0-py3-none-any.whl: written" in said


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ENGINES)
def test_migration_is_generated_from_the_sources(next_version: Clone, engine: str) -> None:
    migrations = next_version.root / "migrations" / engine
    *_, before, newest = migration_files(migrations)
    assert is_released(before)
    assert not is_released(newest)
    migration = read_release(migrations).migrations[-1].migration
    there = [(part.kind, part.name) for part in recorded(migration)]
    back = [part.text for part in recorded(migration, "rollback")]
    assert there[0] == ("statement", "")
    assert "tables/queue" in {name for _, name in there}
    if engine == "oracle":
        changed = {name for _, name in there if name.startswith("packages/")}
        assert {"packages/rowq.sql", "packages/rowq_body.sql"} <= changed
        assert not any(ROUTINE in text for text in back)
    else:
        assert {f"routines/{ROUTINE}.sql", "routines/version.sql"} <= {name for _, name in there}
        dropped = [text for text in back if text.startswith("drop ") and "create " not in text]
        assert len(dropped) == 1
        assert ROUTINE.replace("_", "") in dropped[0].lower().replace("_", "")
    assert "note" in back[-1]
    assert any(REMARK in part.text for part in recorded(migration))
    assert not any(REMARK in text for text in back)


@pytest.mark.timeout(600)
def test_database_upgrades_to_next_version_and_back(
    server: Server, empty_database: str, next_version: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    if server.engine not in {"postgres", "mysql"}:
        pytest.skip("columns are read from information_schema; to run it: --engine postgres18")
    folder = next_version.root / "migrations"
    monkeypatch.setattr("rowq.tools.migrate.release.migrations_directory", lambda: folder)
    newest = len(migration_files(folder / server.engine))
    assert newest == NEWEST + 1

    with closing(server.connect(empty_database)) as connection:

        def columns() -> list[tuple[object, ...]]:
            return [tuple(row) for row in connection.execute(COLUMNS).fetchall()]

        assert migrate.migrate(empty_database, to=newest - 1).applied[-1] == newest - 1
        before = columns()
        works(empty_database)
        assert migrate.migrate(empty_database).applied == (newest,)
        upgraded = columns()
        assert len(upgraded) == len(before) + 1
        assert migrate.status(empty_database).drift == ()
        works(empty_database)
        assert migrate.rollback(empty_database).rolled_back == (newest,)
        assert columns() == before
        assert migrate.status(empty_database).drift == ()
        works(empty_database)

        migrate.rollback(empty_database, to=0, force=True)
        installing = Connection(connection) if server.engine == "mysql" else connection
        for text in sources(next_version.root / "sql" / server.engine).values():
            installing.execute(text)
        assert columns() == upgraded


def test_clones_sums_are_those_of_the_release(next_version: Clone) -> None:
    for engine in ENGINES:
        listed = (next_version.root / "migrations" / engine / SUMS).read_text(encoding="utf-8")
        assert newest_of(next_version, engine).name not in listed
