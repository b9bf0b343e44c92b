"""Transactions on a connection of pyodbc's, and how to tell that they were ended by others."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from rowq.engines.sqlserver.driver import commit, execute, load_driver, roll_back, value_of
from rowq.errors import RowqError

# This leaves one transaction open, whether the driver has opened it already or leaves that to the
# first statement, where an explicit one counts twice.
_OPEN = """
    set nocount on;
    if @@trancount = 0 begin transaction;
    while @@trancount > 1 commit transaction;
"""
# Open a transaction where the server, or somebody's statement, has ended it: the driver's rollback
# needs one.
_REOPEN = "if @@trancount = 0 begin transaction;"
_IDENTITY = "select current_transaction_id()"
_BACK_TO = """
    if xact_state() = 1 rollback transaction {name};
    else if @@trancount > 0 rollback transaction;
"""
_savepoints = count(1)


class Transactions:
    """The transactions that were opened here, by the connection that each is on."""

    def __init__(self) -> None:
        # Each value is the server's number of the transaction.
        self._opened: dict[int, int] = {}

    def is_open(self, connection: Any) -> bool:
        """Whether a call made now would be inside a transaction that the caller must end."""
        if connection.closed:
            return False
        opened = self._opened.get(id(connection))
        if opened is None and not connection.autocommit:
            return True
        try:
            if opened is None:
                return bool(value_of(connection, "select @@trancount"))
            return bool(value_of(connection, _IDENTITY) == opened)
        except load_driver().Error:
            return False

    @contextmanager
    def outermost(self, connection: Any) -> Iterator[None]:
        """Leave autocommit for a block, so that commit and rollback of the driver have a meaning.

        Autocommit comes back only where nothing is open: the driver would commit that.
        Raises RowqError when the transaction was ended inside.
        """
        connection.autocommit = False
        try:
            execute(connection, _OPEN)
            opened = value_of(connection, _IDENTITY)
            self._opened[id(connection)] = opened
            yield
            _require_same(connection, opened)
            commit(connection)
            connection.autocommit = True
        except BaseException:
            _undo(connection)
            raise
        finally:
            self._opened.pop(id(connection), None)

    @contextmanager
    def nested(self, connection: Any) -> Iterator[None]:
        """Roll back to here on an exception; T-SQL has no word to release a savepoint.

        Raises RowqError when the transaction was ended inside: what went before is then undone,
        or committed, without anybody having asked for that.
        """
        name = f"rowq_{next(_savepoints)}"
        opened = value_of(connection, _IDENTITY)
        execute(connection, f"save transaction {name}")
        try:
            yield
            _require_same(connection, opened)
        except BaseException:
            _back_to(connection, name)
            raise


def _undo(connection: Any) -> None:
    """Roll back and return to autocommit; a connection that cannot do that is closed."""
    error = load_driver().Error
    try:
        execute(connection, _REOPEN)
        roll_back(connection)
        connection.autocommit = True
    except error:
        with suppress(error):
            connection.close()


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, and all of the transaction where that is no longer possible."""
    error = load_driver().Error
    try:
        execute(connection, _BACK_TO.format(name=savepoint))
    except error:
        with suppress(error):
            roll_back(connection)


def _require_same(connection: Any, opened: int) -> None:
    if value_of(connection, _IDENTITY) != opened:
        raise RowqError("the transaction was ended inside the block that it was opened for")
