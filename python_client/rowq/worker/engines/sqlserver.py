"""A transactional worker's transaction on SQL Server.

While a handler runs, @@trancount is 2: a commit of the handler only decrements it, and a rollback
ends both transactions, which is detected.
"""

# ruff: noqa: D102 - the methods are described in base.py

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyodbc

from rowq.engines.sqlserver.driver import commit, execute, roll_back, value_of
from rowq.worker.engines.base import (
    AbortedTransaction,
    TransactionEnded,
    WorkTransaction,
    first_words,
    is_one_of,
    lent,
    refuse_ending,
    refusing,
)

_ENDING = frozenset(
    {
        *(("commit",), ("begin", "tran"), ("begin", "transaction"), ("begin", "distributed")),
        *(("rollback",), ("set", "implicit_transactions")),
    }
)
_BEGIN = """
    set nocount on;
    set transaction isolation level read committed;
    if @@trancount = 0 begin transaction;
    while @@trancount > 1 commit transaction;
    save transaction rowq_handler;
    begin transaction;
    select current_transaction_id();
"""
# The result is 1 if kept, 0 if there is another transaction or none, -1 if the transaction is
# uncommittable.
_KEEP = """
    set nocount on;
    declare @state int = iif(current_transaction_id() = {opened}, xact_state(), 0);
    if @state = 1
    begin
        while @@trancount > 1 commit transaction;
        save transaction rowq_handler;
        begin transaction;
    end;
    select @state;
"""
_UNDO = """
    set nocount on;
    declare @state int = iif(current_transaction_id() = {opened}, xact_state(), 0);
    if @state = 1
    begin
        rollback transaction rowq_handler;
        while @@trancount > 1 commit transaction;
        begin transaction;
    end;
    select @state;
"""
_CLOSE = "while @@trancount > 1 commit transaction;"
_REOPEN = "if @@trancount = 0 begin transaction;"


class SqlserverWork(WorkTransaction):
    """Transaction with one savepoint, always before the next handler's writes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._opened = 0

    def begin(self) -> None:
        self._connection.autocommit = False
        self._opened = int(value_of(self._connection, _BEGIN))

    @contextmanager
    def lend(self, claim_id: int) -> Iterator[Any]:
        with lent(LentConnection(self._connection), claim_id) as connection:
            yield connection

    def keep(self) -> AbortedTransaction | None:
        self._end_block(_KEEP)
        return None

    def undo(self) -> None:
        self._end_block(_UNDO)

    def commit(self) -> None:
        execute(self._connection, _CLOSE)
        commit(self._connection)
        self._connection.autocommit = True

    def abandon(self) -> None:
        try:
            # The driver's rollback needs a transaction.
            execute(self._connection, _REOPEN)
            roll_back(self._connection)
            self._connection.autocommit = True
        except pyodbc.Error:
            with suppress(pyodbc.Error):
                self._connection.close()

    def _end_block(self, statement: str) -> None:
        state = int(value_of(self._connection, statement.format(opened=self._opened)))
        if state == 1:
            return
        self.abandon()
        if state == -1:
            text = "the database ended the worker's transaction after an error"
        else:
            text = "a handler ended the worker's transaction"
        raise TransactionEnded(text, committed=False)


WORK = SqlserverWork


class LentConnection:
    """A lent connection: a wrapper, because pyodbc's own objects cannot be changed."""

    def __init__(self, connection: Any) -> None:
        vars(self)["rowq_lent"] = connection

    commit = refusing("commit")
    rollback = refusing("rollback")
    close = refusing("close")
    set_autocommit = refusing("autocommit")

    def cursor(self) -> "LentCursor":
        """Return a cursor with the same restrictions."""
        return LentCursor(self, vars(self)["rowq_lent"].cursor())

    def execute(self, statement: str, *values: Any) -> "LentCursor":
        """Execute a statement with a new cursor."""
        return self.cursor().execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["rowq_lent"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "autocommit":
            refuse_ending(name)
        setattr(vars(self)["rowq_lent"], name, value)

    def __enter__(self) -> "LentConnection":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()


class LentCursor:
    """A cursor of a LentConnection; unlike pyodbc's, it does not commit at the end of a block."""

    def __init__(self, connection: LentConnection, cursor: Any) -> None:
        vars(self)["connection"] = connection
        vars(self)["rowq_lent"] = cursor

    commit = refusing("commit")
    rollback = refusing("rollback")

    def execute(self, statement: str, *values: Any) -> "LentCursor":
        """Execute a statement, unless it ends the transaction."""
        return self._run("execute", statement, *values)

    def executemany(self, statement: str, *values: Any) -> "LentCursor":
        """Execute a statement for each row of values, unless it ends the transaction."""
        return self._run("executemany", statement, *values)

    def _run(self, method: str, statement: str, *values: Any) -> "LentCursor":
        words = first_words(statement, comments_nest=True)
        if is_one_of(words, _ENDING):
            refuse_ending(" ".join(words))
        run: Callable[..., Any] = getattr(vars(self)["rowq_lent"], method)
        run(statement, *values)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["rowq_lent"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["rowq_lent"], name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(vars(self)["rowq_lent"])

    def __enter__(self) -> "LentCursor":
        return self

    def __exit__(self, *_: object) -> None:
        pass
