"""Transactions and savepoints on a connection of python-oracledb's."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from rowq.engines.oracle.driver import execute, load_driver

_savepoints = count(1)


@contextmanager
def outermost(connection: Any) -> Iterator[None]:
    """Leave autocommit for a block: commit on leaving it, roll back on an exception."""
    connection.autocommit = False
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(load_driver().Error):
            connection.rollback()
        raise
    finally:
        connection.autocommit = True


@contextmanager
def nested(connection: Any) -> Iterator[None]:
    """Roll back to the beginning of a block on an exception."""
    name = f"rowq_{next(_savepoints)}"
    execute(connection, f"savepoint {name}")
    try:
        yield
    except BaseException:
        with suppress(load_driver().Error):
            execute(connection, f"rollback to savepoint {name}")
        raise
