"""What rowq.contrib.testing does on PostgreSQL by statements of its own."""

from typing import Any

from rowq.engines.postgres.driver import load_driver

# Each message keeps its place in the order. None may be due before now: promote begins where it has
# looked last.
MAKE_DUE = """
    with moment as materialized (select clock_timestamp() as now)
    update rowq.delayed d
    set due_at = least(d.due_at, m.now + n.place * interval '1 microsecond')
    from moment m
    cross join (
        select e.queue_id, e.message_id,
               row_number() over (order by e.due_at, e.message_id) as place
        from rowq.delayed e
        join rowq.queue q on q.queue_id = e.queue_id
        where q.queue_name = %s
    ) n
    where d.queue_id = n.queue_id
      and d.message_id = n.message_id
"""

_NUMBER = "select pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text"


def is_aborted(connection: Any) -> bool:
    """Whether an error has left the connection's transaction so that it takes nothing more."""
    return bool(connection.info.transaction_status == load_driver().pq.TransactionStatus.INERROR)


class SavepointGuard:
    """Undoes what a handler has written where an error has spoiled the test's transaction.

    A savepoint before the handler lets that go on. Outside of one there is nothing to mend.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._number = self._current()
        if self._number is not None:
            connection.execute("savepoint rowq_handler")

    def end(self) -> bool:
        """Return whether the transaction was spoiled; what the handler wrote is undone then.

        Raises the driver's error where the handler has ended the transaction before that.
        """
        if self._number is None:
            return False
        if is_aborted(self._connection):
            self._connection.execute("rollback to savepoint rowq_handler")
            self._connection.execute("release savepoint rowq_handler")
            return True
        # A handler may commit on a connection that lets it, and begin another transaction.
        if self._current() == self._number:
            self._connection.execute("release savepoint rowq_handler")
        return False

    def _current(self) -> str | None:
        """Return the number of the open transaction; None where there is none that has written."""
        driver = load_driver()
        if self._connection.info.transaction_status != driver.pq.TransactionStatus.INTRANS:
            return None
        with driver.Cursor(self._connection, row_factory=driver.rows.tuple_row) as cursor:
            number: str | None = cursor.execute(_NUMBER).fetchone()[0]
        return number
