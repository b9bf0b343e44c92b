"""A transactional worker's transaction on Oracle.

DDL statements commit before and after themselves.
"""

# ruff: noqa: D102 - the methods are described in base.py

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import oracledb

from rowq.worker.engines.base import (
    AbortedTransaction,
    TransactionEnded,
    WorkTransaction,
    first_words,
    is_one_of,
    lent,
    refuse_after_end,
    refuse_ending,
    refusing,
)

_ENDING = frozenset(
    {
        *(("commit",), ("rollback",), ("alter",), ("create",), ("drop",), ("rename",)),
        *(("truncate",), ("grant",), ("revoke",), ("analyze",), ("audit",), ("noaudit",)),
        *(("comment",), ("flashback",), ("purge",), ("associate",), ("disassociate",)),
    }
)
_NOT_ENDING = frozenset({("rollback", "to"), ("rollback", "work", "to"), ("alter", "session")})
_GUARD = "rowq_guard"
_BEGIN = """
    begin
        savepoint rowq_handler;
        :number := dbms_transaction.local_transaction_id(true);
    end;
    """
_KEEP = """
    begin
        :same := 0;
        if dbms_transaction.local_transaction_id = :number then
            savepoint rowq_handler;
            :same := 1;
        end if;
    end;
    """
_UNDO = """
    begin
        :same := 0;
        if dbms_transaction.local_transaction_id = :number then
            rollback to savepoint rowq_handler;
            :same := 1;
        end if;
    end;
    """


class OracleWork(WorkTransaction):
    """Transaction with one savepoint, always before the next handler's writes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._number = ""
        self._committed: bool | None = None

    def begin(self) -> None:
        self._connection.autocommit = False
        with self._connection.cursor() as cursor:
            cursor.execute("set transaction isolation level read committed")
            number = cursor.var(str)
            cursor.execute(_BEGIN, {"number": number})
            self._number = number.getvalue()

    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        own = self._connection
        return lent(
            own,
            claim_id,
            **{name: refusing(name) for name in ("begin", "commit", "rollback", "close")},
            cursor=lambda *args, **options: LentCursor(own, *args, **options),
            **{_GUARD: self._guard},
        )

    def keep(self) -> AbortedTransaction | None:
        self._end_block(_KEEP, kept=True)
        return None

    def undo(self) -> None:
        self._end_block(_UNDO, kept=False)

    def commit(self) -> None:
        self._connection.commit()
        self._connection.autocommit = True

    def abandon(self) -> None:
        with suppress(oracledb.Error):
            self._connection.rollback()
            self._connection.autocommit = True

    def _end_block(self, block: str, *, kept: bool) -> None:
        with self._connection.cursor() as cursor:
            same = cursor.var(int)
            cursor.execute(block, {"number": self._number, "same": same})
            if same.getvalue() == 1 and not self._connection.autocommit:
                return
        # If no statement was seen to end it, a procedure did, and most procedures commit.
        committed = self._committed is not False
        if committed and kept:
            self._connection.commit()
        self.abandon()
        raise TransactionEnded(
            "a handler ended the worker's transaction",
            committed=committed,
            kept=committed and kept,
        )

    def _guard(self, run: Callable[[], Any]) -> Any:
        """Run a statement and record whether the transaction is still open."""
        if self._committed is not None:
            refuse_after_end()
        try:
            found = run()
        except oracledb.Error:
            self._record_end(committed=False)
            raise
        self._record_end(committed=True)
        return found

    def _record_end(self, *, committed: bool) -> None:
        if not self._connection.transaction_in_progress:
            self._committed = committed


WORK = OracleWork


class LentCursor(oracledb.Cursor):
    """A cursor of a lent connection."""

    def execute(self, statement: Any, *args: Any, **options: Any) -> Any:
        """Execute a statement, unless it ends the transaction."""
        _check(statement)
        run = super().execute
        return self._run(lambda: run(statement, *args, **options))

    def executemany(self, statement: Any, *args: Any, **options: Any) -> Any:
        """Execute a statement for each row of values, unless it ends the transaction."""
        _check(statement)
        run = super().executemany
        return self._run(lambda: run(statement, *args, **options))

    def callproc(self, *args: Any, **options: Any) -> Any:
        """Call a procedure."""
        run = super().callproc
        return self._run(lambda: run(*args, **options))

    def callfunc(self, *args: Any, **options: Any) -> Any:
        """Call a function."""
        run = super().callfunc
        return self._run(lambda: run(*args, **options))

    def _run(self, run: Callable[[], Any]) -> Any:
        guard = vars(self.connection).get(_GUARD)
        return guard(run) if guard else run()


def _check(statement: Any) -> None:
    """Refuse a statement that would end the transaction."""
    words = first_words(statement) if isinstance(statement, str) else []
    if is_one_of(words, _ENDING) and not is_one_of(words, _NOT_ENDING):
        refuse_ending(" ".join(words))
