"""Statements of rowq.contrib.testing on PostgreSQL."""

from typing import Any

from rowq.engines.postgres.driver import load_driver

# Messages keep their order. None may be due before now: promote begins at its last position.
MAKE_DUE = """
    with clock as materialized (select clock_timestamp() as now)
    update rowq.delayed d
    set due_at = least(d.due_at, m.now + n.position * interval '1 microsecond')
    from clock m
    cross join (
        select e.queue_id, e.message_id,
               row_number() over (order by e.due_at, e.message_id) as position
        from rowq.delayed e
        join rowq.queue q on q.queue_id = e.queue_id
        where q.queue_name = %s
    ) n
    where d.queue_id = n.queue_id
      and d.message_id = n.message_id
"""

_NUMBER = "select pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text"


def is_aborted(connection: Any) -> bool:
    """Return whether an error has aborted the connection's transaction."""
    return bool(connection.info.transaction_status == load_driver().pq.TransactionStatus.INERROR)


class SavepointGuard:
    """Rolls back a handler's writes if an error has aborted the test's transaction.

    It sets a savepoint before the handler. Outside of a transaction it does nothing.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._number = self._current()
        if self._number is not None:
            connection.execute("savepoint rowq_handler")

    def end(self) -> bool:
        """Return whether the transaction was aborted; the handler's writes are rolled back then.

        Raises the driver's error if the handler has already ended the transaction.
        """
        if self._number is None:
            return False
        if is_aborted(self._connection):
            self._connection.execute("rollback to savepoint rowq_handler")
            self._connection.execute("release savepoint rowq_handler")
            return True
        # A handler may commit and begin another transaction, if its connection allows it.
        if self._current() == self._number:
            self._connection.execute("release savepoint rowq_handler")
        return False

    def _current(self) -> str | None:
        """Return the id of the open transaction; None if there is none that has written."""
        driver = load_driver()
        if self._connection.info.transaction_status != driver.pq.TransactionStatus.INTRANS:
            return None
        with driver.Cursor(self._connection, row_factory=driver.rows.tuple_row) as cursor:
            number: str | None = cursor.execute(_NUMBER).fetchone()[0]
        return number
