"""A transactional worker's transaction on MariaDB and MySQL.

The status in a statement's result shows whether the transaction has ended. A failed statement has
no status, so the server is pinged. The session's counters show what a procedure has done before it
began another transaction.
"""

# ruff: noqa: D102 - the methods are described in base.py

import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import pymysql
from pymysql.constants import SERVER_STATUS

from rowq.engines.mysql.engine import ENGINE
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

_NO_SAVEPOINT = 1305
_KEEPS = ("analyze", "optimize", "repair", "check")
_ENDING = frozenset(
    {
        *(("commit",), ("rollback",), ("begin",), ("start",), ("stop",), ("xa",)),
        *(("alter",), ("create",), ("drop",), ("rename",), ("truncate",), ("change",)),
        *(("grant",), ("revoke",), ("install",), ("uninstall",), ("flush",), ("reset",)),
        *((verb, noun) for verb in _KEEPS for noun in ("table", "tables", "local")),
        *(("lock", "table"), ("lock", "tables"), ("unlock",), ("set", "password")),
        *(("cache", "index"), ("load", "index")),
    }
)
_NOT_ENDING = frozenset(
    {
        *(("rollback", "to"), ("rollback", "work", "to"), ("begin", "not", "atomic")),
        *(("create", "temporary"), ("create", "or", "replace", "temporary")),
        *(("drop", "temporary"), ("drop", "prepare")),
    }
)
_AUTOCOMMIT = re.compile(r"(?:[,\s.`]|@@)autocommit`?\s*:?=", re.IGNORECASE)
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_BLANK = re.compile(r"\s+|--[^\n]*|#[^\n]*|/\*M?!\d*|\*/")
# Statements with hidden effects.
_HIDING = frozenset({("call",), ("execute",), ("begin",)})
_ROWQS_OWN = ["call", "rowq"]
# Counters of the session, including procedures: statements that end a transaction, statements that
# commit implicitly, and rollbacks.
_ENDS = ("com_begin", "com_commit", "com_rollback")
_VERBS = ("create", "alter", "drop")
_NOUNS = ("table", "index", "view", "procedure", "function", "trigger", "db", "user")
_MAKES = (
    *(f"com_{verb}_{noun}" for verb in _VERBS for noun in _NOUNS),
    *("com_truncate", "com_rename_table", "com_lock_tables", "com_grant", "com_revoke"),
)
_ROLLBACKS = ("com_rollback", "handler_rollback")
_COUNTERS = "show session status where lower(variable_name) in ({})".format(
    ", ".join(f"'{name}'" for name in (*_ENDS, *_MAKES, *_ROLLBACKS))
)


class MysqlWork(WorkTransaction):
    """Transaction with one savepoint, always before the next handler's writes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._ended: TransactionEnded | None = None
        self._before: Counter[str] | None = None
        self._is_checking = False

    def begin(self) -> None:
        self._connection.begin()
        self._execute("savepoint rowq_handler")

    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        own = self._connection
        return lent(
            own,
            claim_id,
            **{name: refusing(name) for name in ("begin", "commit", "rollback", "close")},
            autocommit=refusing("autocommit"),
            query=self._reading(own.query),
        )

    def keep(self) -> AbortedTransaction | None:
        self._require_savepoint("release savepoint rowq_handler", self._connection.commit)
        self._execute("savepoint rowq_handler")
        return None

    def undo(self) -> None:
        self._require_savepoint("rollback to savepoint rowq_handler", self._connection.rollback)

    def commit(self) -> None:
        self._connection.commit()

    def abandon(self) -> None:
        with suppress(pymysql.Error):
            self._connection.rollback()

    def _require_savepoint(self, statement: str, end: Callable[[], None]) -> None:
        """Run a statement on the savepoint; if it is gone, `end` the new transaction.

        Raises TransactionEnded then.
        """
        self._check_hidden()
        if self._ended is None:
            try:
                self._execute(statement)
            except pymysql.Error as error:
                if error.args[:1] != (_NO_SAVEPOINT,):
                    raise
                self._record_end(committed=True)
        if self._ended is not None:
            end()
            self._ended.kept = self._ended.committed and end == self._connection.commit
            raise self._ended

    def _record_end(self, *, committed: bool, is_transient: bool = False) -> None:
        who = "the database" if is_transient else "a handler"
        self._ended = self._ended or TransactionEnded(
            f"{who} ended the worker's transaction", committed=committed, is_transient=is_transient
        )

    def _reading(self, query: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method with checks for all statements of a handler."""

        def reading(sql: Any, *args: Any, **options: Any) -> Any:
            if self._is_checking:
                return query(sql, *args, **options)
            hides = self._check_before(sql)
            try:
                found = query(sql, *args, **options)
            except pymysql.Error as error:
                self._check_failed(error, hides=hides)
                raise
            if not (hides or self._is_open()):
                self._record_end(committed=True)
            return found

        return reading

    def _check_before(self, sql: Any) -> bool:
        """Refuse a statement that would end the transaction, or any after its end.

        Return whether the statement may have hidden effects.
        """
        self._check_hidden()
        if self._ended is not None:
            refuse_after_end()
        text = sql.decode("latin-1") if isinstance(sql, bytes | bytearray) else sql
        words = first_words(text, blank=_BLANK)
        if is_one_of(words, _ENDING) and not is_one_of(words, _NOT_ENDING):
            refuse_ending(" ".join(words))
        if words[:1] == ["set"] and _AUTOCOMMIT.search(_STRING.sub("''", text)):
            refuse_ending("set autocommit")
        hides = is_one_of(words, _HIDING) and words[:2] != _ROWQS_OWN
        if hides:
            self._before = self._counters()
        return hides

    def _check_failed(self, error: pymysql.Error, *, hides: bool) -> None:
        """Record whether a failed statement has ended the transaction.

        Then the server has rolled it back, unless a procedure had ended it before.
        """
        try:
            self._connection.ping(reconnect=False)
        except pymysql.Error:
            # The connection is lost: the next statement raises the error.
            return
        if not (hides or self._is_open()) or ENGINE.is_rolled_back(error):
            self._record_end(committed=False, is_transient=True)

    def _check_hidden(self) -> None:
        """Record whether the last statement, if it had hidden effects, ended the transaction."""
        if self._before is None or not self._connection.open:
            return
        before, self._before = self._before, None
        new = self._counters() - before
        if self._is_open() and not any(new[name] for name in _ENDS):
            return
        is_rolled_back = any(new[name] for name in _ROLLBACKS)
        is_committed = any(new[name] for name in ("com_begin", "com_commit", *_MAKES))
        self._record_end(committed=is_committed or not is_rolled_back)

    def _is_open(self) -> bool:
        return bool(self._connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def _counters(self) -> Counter[str]:
        self._is_checking = True
        try:
            with pymysql.cursors.Cursor(self._connection) as cursor:
                cursor.execute(_COUNTERS)
                return Counter({name.lower(): int(value) for name, value in cursor.fetchall()})
        finally:
            self._is_checking = False

    def _execute(self, statement: str) -> None:
        with pymysql.cursors.Cursor(self._connection) as cursor:
            cursor.execute(statement)


WORK = MysqlWork
