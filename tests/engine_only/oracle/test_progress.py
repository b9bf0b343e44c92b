"""Progress on Oracle: 4-byte characters and empty texts."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue_one, enqueue

SNAKE = "\N{SNAKE}"
"""A character of four bytes, which a CLOB counts as two."""


@pytest.mark.parametrize(
    ("said", "kept"),
    [(SNAKE * 2001, SNAKE * 2000), (f"x{SNAKE * 2000}", f"x{SNAKE * 1999}"), ("", "")],
    ids=["long", "odd", "empty"],
)
def test_progress_is_truncated_by_characters(
    connection: Connection, queue: str, said: str, kept: str
) -> None:
    [message_id] = enqueue(connection, queue, "x")
    claim = {"queue_name": queue, "claim_id": dequeue_one(connection, queue).claim_id}
    call(connection, "extend_lease", **claim, progress="before")
    call(connection, "extend_lease", **claim, progress=said)
    call(connection, "extend_lease", **claim)
    found = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert found.progress == kept
