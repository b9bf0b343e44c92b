"""Servers for the tests of the seeds' experiments: a private one of each engine, on demand.

Where there is no private one, the server at a given URL is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from benchmarks.rowq_bench.runner import Lab
from benchmarks.rowq_bench.seeds.all_seeds import seeds_engine
from benchmarks.rowq_bench.seeds.base import Form
from benchmarks.rowq_bench.seeds.dialects import DIALECTS
from rowq.demo.local_postgres import LocalPostgresError
from rowq.demo.postgres_binaries import choose_binaries
from tests.benchmarks.babelfish import open_given
from tests.engines.base import Unavailable, url_variable
from tests.engines.local_mariadb import find_programs

AT_A_URL = {"sqlserver"}


def pytest_configure(config: pytest.Config) -> None:
    """Add a mark."""
    words = "genuine: run only on the engine itself, not on one that only speaks its language"
    config.addinivalue_line("markers", words)


@pytest.fixture(params=sorted(DIALECTS))
def engine(request: pytest.FixtureRequest, labs: Callable[[str], Any]) -> str:
    """Return the name of an engine whose server is here, with all that the test requires."""
    name = str(request.param)
    is_picky = request.node.get_closest_marker("genuine") is not None
    try:
        _look_for(name)
        server = labs(name).server if name in AT_A_URL else None
    except (LocalPostgresError, Unavailable) as error:
        pytest.skip(str(error))
    if server and is_picky and "genuine" not in server.capabilities:
        pytest.skip(f"{server.name} lacks: genuine")
    return name


def _look_for(name: str) -> None:
    """Raise LocalPostgresError or Unavailable where there is no server of an engine."""
    if name == "postgres":
        choose_binaries(18)
    elif name == "mariadb":
        find_programs()
    elif not os.environ.get(url_variable(name)):
        raise Unavailable(f"no server of {name}; give {url_variable(name)}")


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Return a function that gives an engine's server, started when first asked for."""
    opened: dict[str, tuple[AbstractContextManager[Lab], Lab]] = {}

    def lab(name: str) -> Any:
        if name not in opened:
            context = (
                open_given(os.environ[url_variable(name)])
                if name in AT_A_URL
                else seeds_engine(name).open_lab(None, tmp_path_factory.mktemp(name) / "server")
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
