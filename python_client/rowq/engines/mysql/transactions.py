"""Transactions and savepoints on a connection of PyMySQL's."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from rowq.engines.mysql.driver import execute, load_driver

_savepoints = count(1)


@contextmanager
def outermost(connection: Any) -> Iterator[None]:
    """Commit on leaving a block, roll back on an exception."""
    connection.begin()
    try:
        yield
    except BaseException:
        with suppress(load_driver().Error):
            connection.rollback()
        raise
    connection.commit()


@contextmanager
def nested(connection: Any) -> Iterator[None]:
    """Roll back to the beginning of a block on an exception."""
    name = f"rowq_{next(_savepoints)}"
    execute(connection, f"savepoint {name}")
    try:
        yield
        execute(connection, f"release savepoint {name}")
    except BaseException:
        _back_to(connection, name)
        raise


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, and all of the transaction where the server has ended it already.

    A deadlock ends it, and so does a statement that commits; in_transaction then tells.
    """
    error = load_driver().Error
    try:
        execute(connection, f"rollback to savepoint {savepoint}")
    except error:
        with suppress(error):
            connection.rollback()
