"""version."""

import pytest

from rowq.tools.migrate.release import release_for
from tests.engines.base import Connection, Server
from tests.helpers.calls import call_one


@pytest.mark.promise("P16")
def test_version_returns_the_installed_version(server: Server, connection: Connection) -> None:
    row = call_one(connection, "version")
    newest = release_for(server.engine).migrations[-1]
    assert (row.rowq_version, row.schema_version) == (newest.rowq_version, newest.number)
    assert server.product in row.engine.lower().replace(" ", "")
