"""Fixtures of the migration tests: psql, releases, a private server."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rowq.tools.migrate.sources import TABLES, sources_of
from tests.engines.base import Connection, Server, Unavailable
from tests.engines.postgres.providers import PostgresProvider
from tests.engines.postgres.psql import psql_program
from tests.engines.postgres.server import PostgresServer
from tests.helpers.releases import begin_next, change_sources, copied_without_history, use_released

Psql = Callable[..., subprocess.CompletedProcess[str]]


def major(server: Server) -> int:
    return int(server.name.removeprefix("postgres"))


@pytest.fixture
def psql(server: Server) -> Psql:
    """Return a function that runs psql on a database, with a file or a text as stdin."""
    found = psql_program(server)

    def run(url: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [found, "--no-psqlrc", "--quiet", "--dbname", url, *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def session(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session of the empty database's owner."""
    connection = server.connect(empty_database)
    yield connection
    connection.close()


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let rowq use a released copy of PostgreSQL's migrations; return it."""
    return use_released(copied_without_history(tmp_path, "postgres"), monkeypatch)


@pytest.fixture
def second_release(releases: Path) -> Path:
    """Add a migration with a new column, a changed routine, a new helper and a new table."""
    change_sources(releases)
    table = "create table if not exists rowq.second (second_id bigint not null);\n"
    tables = sources_of(releases) / TABLES
    there = tables.read_text(encoding="utf-8")
    tables.write_text(f"{there}\n{table}", encoding="utf-8")
    column = (
        "alter table rowq.queue add column if not exists note text",
        "alter table rowq.queue drop column if exists note",
    )
    begin_next(releases, "second", "0.2.0", column)
    return releases


@pytest.fixture(scope="module")
def cluster(server: Server) -> Iterator[PostgresServer]:
    """Return a server for this module only: rowq's roles are server-wide."""
    try:
        own = PostgresProvider().from_local(str(major(server)))
    except Unavailable as reason:
        pytest.skip(f"no server of its own: {reason}; to run it: make install")
    yield own
    own.close()
