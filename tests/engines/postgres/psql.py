"""psql for tests: the server's own, else the one on PATH."""

import shutil

import pytest

from rowq.tools.local_postgres.directory import LocalPostgresError, choose_binaries
from tests.engines.base import Server


def psql_program(server: Server) -> str:
    """Return the path of psql; skip the test if there is none."""
    try:
        program = choose_binaries(int(server.name.removeprefix("postgres"))).bin_dir / "psql"
    except (LocalPostgresError, ValueError):
        program = None
    found = str(program) if program and program.exists() else shutil.which("psql")
    if found is None:
        pytest.skip("no psql; to run it: apt-get install postgresql-client")
    return found
