"""A transactional worker's transaction on MariaDB and MySQL.

A statement that ends the transaction shows in the status that comes with its result; only one that
fails brings none, and the server is asked. What a procedure has done before it began another
transaction is told by the session's counters.
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
# These may do more than they say.
_HIDING = frozenset({("call",), ("execute",), ("begin",)})
_ROWQS_OWN = ["call", "rowq"]
# The session counts what it has done, procedures included: statements that end a transaction for
# sure, statements that commit one as they make or alter something, and all that was rolled back.
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
    """Keeps one savepoint, always before what the next handler writes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._ended: TransactionEnded | None = None
        self._before: Counter[str] | None = None
        self._is_looking = False

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
        """Run a statement about the savepoint; where that is gone `end` whatever was begun since.

        Raises TransactionEnded then.
        """
        self._look_behind()
        if self._ended is None:
            try:
                self._execute(statement)
            except pymysql.Error as error:
                if error.args[:1] != (_NO_SAVEPOINT,):
                    raise
                self._note_end(committed=True)
        if self._ended is not None:
            end()
            self._ended.kept = self._ended.committed and end == self._connection.commit
            raise self._ended

    def _note_end(self, *, committed: bool, is_transient: bool = False) -> None:
        who = "the database" if is_transient else "a handler"
        self._ended = self._ended or TransactionEnded(
            f"{who} ended the worker's transaction", committed=committed, is_transient=is_transient
        )

    def _reading(self, query: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method that all of a handler's statements go through, as one that looks."""

        def reading(sql: Any, *args: Any, **options: Any) -> Any:
            if self._is_looking:
                return query(sql, *args, **options)
            hides = self._look_before(sql)
            try:
                found = query(sql, *args, **options)
            except pymysql.Error as error:
                self._look_after(error, hides=hides)
                raise
            if not (hides or self._is_open()):
                self._note_end(committed=True)
            return found

        return reading

    def _look_before(self, sql: Any) -> bool:
        """Refuse a statement that would end the transaction; return whether it hides what it does.

        Refuses all of them after the transaction's end.
        """
        self._look_behind()
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

    def _look_after(self, error: pymysql.Error, *, hides: bool) -> None:
        """Note that the transaction is over, if it is, after a statement that failed.

        Then the server has rolled it back, unless a procedure had ended it before.
        """
        try:
            self._connection.ping(reconnect=False)
        except pymysql.Error:
            # The connection is lost, and the next statement says so.
            return
        if not (hides or self._is_open()) or ENGINE.is_undone(error):
            self._note_end(committed=False, is_transient=True)

    def _look_behind(self) -> None:
        """Note that the last statement ended the transaction, if it was one that hides that."""
        if self._before is None or not self._connection.open:
            return
        before, self._before = self._before, None
        new = self._counters() - before
        if self._is_open() and not any(new[name] for name in _ENDS):
            return
        is_undone = any(new[name] for name in _ROLLBACKS)
        is_committed = any(new[name] for name in ("com_begin", "com_commit", *_MAKES))
        self._note_end(committed=is_committed or not is_undone)

    def _is_open(self) -> bool:
        return bool(self._connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def _counters(self) -> Counter[str]:
        self._is_looking = True
        try:
            with pymysql.cursors.Cursor(self._connection) as cursor:
                cursor.execute(_COUNTERS)
                return Counter({name.lower(): int(value) for name, value in cursor.fetchall()})
        finally:
            self._is_looking = False

    def _execute(self, statement: str) -> None:
        with pymysql.cursors.Cursor(self._connection) as cursor:
            cursor.execute(statement)


WORK = MysqlWork
