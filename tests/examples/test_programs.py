"""Each example enqueues in its own transaction, and its worker loses no message."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.base import Connection, Server
from tests.examples.conformance import SETTINGS, Conformance
from tests.examples.programs import Programs, languages
from tests.helpers.worker_queue import MakeQueue

by_language = pytest.mark.parametrize("name", languages())


@pytest.fixture
def orders(connection: Connection) -> Iterator[Connection]:
    """Return a connection to a database without a table of orders, before and after."""
    connection.execute("drop table if exists orders")
    yield connection
    connection.execute("drop table if exists orders")


@by_language
@pytest.mark.promise("P01")
def test_order_and_message_commit_together(
    programs: Programs, make_queue: MakeQueue, orders: Connection
) -> None:
    queue = make_queue()
    done = subprocess.run(
        [*programs.enqueue, queue.name, "41"],
        cwd=programs.directory,
        env={**os.environ, **programs.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (message,) = queue.dequeue_fast(10)
    assert message.data == {"order": 41, "fail": 0}
    stored = orders.execute("select order_number from orders").fetchall()
    assert [int(number) for (number,) in stored] == [41]


@by_language
@pytest.mark.promise("P02", "P03", "P04", "P09", "P10")
def test_worker_beside_python_loses_nothing(
    programs: Programs,
    make_queue: MakeQueue,
    connection: Connection,
    server: Server,
    tmp_path: Path,
) -> None:
    queue = make_queue(**SETTINGS)
    Conformance(queue, connection, server, programs, tmp_path).perform()
