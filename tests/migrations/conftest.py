"""What the tests of migrations need beyond a server: psql, releases of their own, a cluster."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rowq.resources import migrations_directory
from tests.engines.base import Connection, Server, Unavailable
from tests.engines.postgres import PostgresProvider, PostgresServer
from tests.helpers.psql import psql_program

Psql = Callable[..., subprocess.CompletedProcess[str]]


def major(server: Server) -> int:
    return int(server.name.removeprefix("postgres"))


@pytest.fixture
def psql(server: Server) -> Psql:
    """Return a function that runs psql on a database, with a file or a text through its stdin."""
    found = psql_program(server)

    def run(url: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [found, "--no-psqlrc", "--quiet", "--dbname", url, *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def session(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session of the user that made the test's own empty database."""
    connection = server.connect(empty_database)
    yield connection
    connection.close()


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of PostgreSQL's migrations that rowq uses during the test."""
    copy = tmp_path / "migrations"
    shutil.copytree(migrations_directory(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("rowq.migrate.engines.migrations_directory", lambda: copy)
    return copy / "postgres"


SECOND = '''
"""A second release, made up by a test."""

from rowq.migrate.steps import frozen, statement

__depends__ = {"pg-0001-first-release"}
__rowq_version__ = "0.2.0"

statement(
    "alter table rowq.queue add column if not exists note text",
    "alter table rowq.queue drop column if exists note",
)
frozen(__file__)
'''


@pytest.fixture
def second_release(releases: Path) -> Path:
    """Add a migration with a new column, a changed routine, a new helper and a new table."""
    folder = releases / "0002"
    for room in ("tables", "internal", "routines"):
        (folder / room).mkdir(parents=True)
    version = (releases / "0001" / "routines" / "version.sql").read_text(encoding="utf-8")
    changed = version.replace("-- version   1", "-- version   2")
    (folder / "routines" / "version.sql").write_text(changed, encoding="utf-8")
    helper = re.sub(r"rowq\.version\(", "rowq.internal_second(", version)
    (folder / "internal" / "second.sql").write_text(helper, encoding="utf-8")
    table = "create table if not exists rowq.second (second_id bigint not null);\n"
    (folder / "tables" / "second.sql").write_text(table, encoding="utf-8")
    names = "tables/second.sql\ninternal/second.sql\nroutines/version.sql\n"
    (folder / "order.txt").write_text(names, encoding="utf-8")
    (releases / "pg-0002-second.py").write_text(SECOND.lstrip(), encoding="utf-8")
    return releases


@pytest.fixture(scope="module")
def cluster(server: Server) -> Iterator[PostgresServer]:
    """Return a server of this module's own: rowq's roles belong to the whole server."""
    try:
        own = PostgresProvider().from_local(str(major(server)))
    except Unavailable as reason:
        pytest.skip(f"a server of its own is needed, {reason}")
    yield own
    own.close()
