"""Expiry on MariaDB and MySQL: cost, large calls and old read views."""

import time

import pytest

from tests.engine_only.mysql.costs import pages, queue_id_of, rows, until_quiet
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, enqueue


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


def fill(connection: Connection, queue: str, count: int) -> None:
    """Enqueue messages that expire at once."""
    messages = [{"body": "x", "expire_seconds": 0.001}] * count
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)


def maintain(connection: Connection, queue: str) -> int:
    """Call maintain and return how many messages expired."""
    return int(call_one(connection, "maintain", queue_name=queue).expired)


@pytest.mark.promise("P13", "P36")
def test_deleted_expiry_rows_cost_maintain_almost_nothing(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "x")
    few = rows(connection, lambda: maintain(connection, queue))
    fill(connection, queue, 500)
    assert maintain(connection, queue) == 500
    assert rows(connection, lambda: maintain(connection, queue)) <= 1.2 * few


@pytest.mark.promise("P36")
def test_maintain_expires_thousands_and_the_longest_keys(
    connection: Connection, queue: str
) -> None:
    fill(connection, queue, 9000)
    assert call_one(connection, "maintain", queue_name=queue, batch_size=10000).expired == 9000
    for first in range(0, 700, 100):
        messages = [
            {
                "body": "x",
                "expire_seconds": 0.001,
                "group_key": f"{number // 2:04}" + "\U0001f680" * 196,
                "dedup_key": f"{number:04}" + "\U0001f680" * 196,
            }
            for number in range(first, first + 100)
        ]
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    found = [call_one(connection, "maintain", queue_name=queue, batch_size=10000) for _ in range(2)]
    assert sum(row.expired for row in found) == 700


def cost(connection: Connection, queue: str) -> int:
    """Return the pages that maintain reads to expire one message, between two rescans.

    maintain backs off after a slow rescan. A floor stays 0.5 seconds behind.
    """
    queue_id = queue_id_of(connection, queue)
    connection.execute(
        "update rowq.lane set check_after = utc_timestamp(6) + interval 1 hour"
        " where lane = -6 and queue_id = %s",
        [queue_id],
    )

    def expire() -> None:
        connection.execute("call rowq.internal_expire(%s, 0, 1000, @expired)", [queue_id])

    time.sleep(0.6)
    found = []
    for _ in range(5):
        fill(connection, queue, 1)
        until_quiet(connection)
        found.append(pages(connection, expire))
        assert connection.execute("select @expired").fetchall() == ((1,),)
    return min(found)


@pytest.mark.slow("fills large tables")
@pytest.mark.promise("P13", "P36")
@pytest.mark.usefixtures("old_view")
def test_old_view_does_not_raise_the_cost_of_expiry(connection: Connection, queue: str) -> None:
    costs = []
    for rounds in (10, 30):
        for _ in range(rounds):
            fill(connection, queue, 1000)
            assert maintain(connection, queue) == 1000
        costs.append(cost(connection, queue))
    first, last = costs
    assert last <= 1.2 * first + 10, f"{first} pages beside 10,000 dead rows, {last} beside 40,000"
