"""Where the tests find psql: beside the server's binaries, else on the PATH."""

import shutil

import pytest

from rowq.tools.local_postgres.directory import LocalPostgresError, choose_binaries
from tests.engines.base import Server


def psql_program(server: Server) -> str:
    """Return the path of psql; the test is skipped where there is none."""
    try:
        program = choose_binaries(int(server.name.removeprefix("postgres"))).bin_dir / "psql"
    except (LocalPostgresError, ValueError):
        program = None
    found = str(program) if program and program.exists() else shutil.which("psql")
    if found is None:
        pytest.skip("no psql; to run it: apt-get install postgresql-client")
    return found
