"""version."""

import pytest

import rowq
from tests.engines.base import Connection, Server
from tests.helpers.calls import call_one


@pytest.mark.promise("P16")
def test_what_is_installed_is_told(server: Server, connection: Connection) -> None:
    row = call_one(connection, "version")
    assert row.rowq_version == rowq.__version__
    assert row.schema_version >= 1
    assert server.product in row.engine.lower().replace(" ", "")
