"""Fixtures for the examples' tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.base import Server
from tests.engines.plugin import server_of
from tests.engines.provide import SERVERS
from tests.examples.programs import Programs, language
from tests.helpers.worker_queue import make_queue

__all__ = ["make_queue"]


@pytest.fixture
def programs(name: str, server: Server, database_url: str, tmp_path: Path) -> Iterator[Programs]:
    """Yield the programs of a language, ready to run."""
    ready = language(name).programs(server, database_url, tmp_path)
    yield ready
    ready.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove pairs of language and server without an example."""
    items[:] = [item for item in items if _is_written(config, item)]


def _is_written(config: pytest.Config, item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    name = call.params.get("name") if call is not None else None
    server = server_of(item)
    if "programs" not in getattr(item, "fixturenames", ()) or not name or not server:
        return True
    return config.stash[SERVERS].engine_of(server) in language(name).ENGINES
