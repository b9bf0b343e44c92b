"""Named locks are the server's, and not a database's: their names must not meet others'."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call

Connect = Callable[..., Connection]


@pytest.mark.promise("P09", "P17")
def test_named_locks_are_given_back_and_bear_the_name_of_the_schema(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name, archive_days=1)
    other = connect()
    connection.execute("do get_lock('rowq_of_the_caller', 0)")
    for routine, arguments in (
        ("maintain", {}),
        ("dequeue_wait", {"wait_seconds": 0.05}),
        ("archive", {}),
    ):
        call(connection, routine, queue_name=queue_name, **arguments)
    part = "select part_id from rowq.queue where queue_name = %s"
    ((number,),) = connection.execute(part, [queue_name]).fetchall()
    name = f"rowq.maintain.{number}"
    assert other.execute("select is_free_lock(%s)", [name]).fetchone() == (1,)
    mine = connection.execute("select is_used_lock('rowq_of_the_caller') = connection_id()")
    assert mine.fetchone() == (1,)
    connection.execute("do release_lock('rowq_of_the_caller')")
