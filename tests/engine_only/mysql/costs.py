"""Costs of a call on MariaDB or MySQL, in pages and rows instead of time."""

import time
from collections.abc import Callable

from tests.engines.base import Connection, wait_until

_PAGES = "show global status like 'Innodb_buffer_pool_read_requests'"
_ROWS = "show session status like 'Handler_%'"
# Counters that count no rows.
_NOT_ROWS = {"Handler_commit", "Handler_prepare", "Handler_savepoint", "Handler_external_lock"}


def queue_id_of(connection: Connection, queue: str) -> int:
    """Return the id of a queue."""
    query = "select queue_id from rowq.queue where queue_name = %s"
    ((queue_id,),) = connection.execute(query, [queue]).fetchall()
    return int(queue_id)


def rescan(connection: Connection, queue: str) -> None:
    """Correct the floors of a queue as maintain does, without its pause."""
    queue_id = queue_id_of(connection, queue)
    connection.execute(
        "update rowq.lane set check_after = '1970-01-01' where queue_id = %s", [queue_id]
    )
    connection.execute("call rowq.internal_rescan_floors(%s, true, true, true)", [queue_id])


def pages(connection: Connection, work: Callable[[], object]) -> int:
    """Do some work; return the number of pages that the server read, dead rows included."""
    before = int(connection.execute(_PAGES).fetchall()[0][1])
    work()
    return int(connection.execute(_PAGES).fetchall()[0][1]) - before


def until_quiet(connection: Connection) -> None:
    """Wait until the server has purged dead rows and reads no pages."""

    def is_quiet() -> bool:
        return pages(connection, lambda: time.sleep(0.02)) == 0

    wait_until(is_quiet, "the server reads no pages", 60)


def fewest_pages(connection: Connection, work: Callable[[], object]) -> int:
    """Return the least number of pages of 5 runs of read-only work on a quiet server."""
    until_quiet(connection)
    return min(pages(connection, work) for _ in range(5))


def cost_of_purge(
    connection: Connection,
    fill: Callable[[], object],
    purge: Callable[[], object],
    is_empty: Callable[[], bool],
) -> int:
    """Return the pages that purging the rows of `fill` takes, between rescans of maintain."""
    time.sleep(0.6)  # A floor stays 0.5 seconds behind now.
    found = []
    for _ in range(5):
        fill()
        until_quiet(connection)
        found.append(pages(connection, purge))
        assert is_empty()
    return min(found)


def rows(connection: Connection, work: Callable[[], object]) -> int:
    """Do some work in this session; return the number of rows that its plans read."""
    before = _rows(connection)
    own = _rows(connection) - before
    work()
    return _rows(connection) - before - 2 * own


def _rows(connection: Connection) -> int:
    found = connection.execute(_ROWS).fetchall()
    return sum(int(value) for name, value in found if name not in _NOT_ROWS)
