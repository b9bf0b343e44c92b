"""health on Oracle after sequences restart, as after an import of rows only."""

import pytest

from tests.engines.base import Connection
from tests.helpers.sequences import check_restart


@pytest.mark.promise("P08")
def test_health_detects_sequences_that_restart(connection: Connection, queue: str) -> None:
    names = ("rowq_message_seq", "rowq_claim_seq")
    check_restart(connection, queue, "alter sequence {} restart start with 1", *names)
