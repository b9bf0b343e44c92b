"""The tests' sessions on Oracle, and the translation of their SQL."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import oracledb

from rowq.engines.oracle.url import connection_parameters
from rowq.errors import CannotConnect

if TYPE_CHECKING:
    from tests.engines.oracle.server import OracleServer

_MARK = re.compile("%s")
_TABLE = re.compile(r"\b(from|into|update|join) rowq\.(?=\w)")
_NO_TABLE = re.compile(r"select (?!.*\bfrom\b).*", re.DOTALL)
_ROWS = re.compile(r"(insert into .*?) values (\(%s.*?\), \(.*)", re.DOTALL)
_TYPES = {"bigint": "number(19)", "varchar(": "varchar2("}


class Session(oracledb.Connection):
    """The driver's connection with psycopg's `execute`; it can be closed twice.

    server: where it was opened, for an administrator's queries.
    """

    server: OracleServer
    closed = False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> oracledb.Cursor:
        cursor = self.cursor()
        cursor.execute(spelled(statement), list(values))
        return cursor

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            super().close()


def open_session(url: str, *, autocommit: bool) -> Session:
    """Open a session; raise CannotConnect."""
    try:
        session = oracledb.connect(
            **connection_parameters(url), conn_class=Session, program="rowq_tests"
        )
    except (oracledb.Error, OSError) as error:
        raise CannotConnect(f"Oracle: {error}") from error
    assert isinstance(session, Session)
    session.autocommit = autocommit
    return session


def spelled(statement: str) -> str:
    """Translate a statement of the tests for Oracle 19c: binds, dual, inserts, types, tables."""
    statement = _TABLE.sub(r"\1 rowq_", statement)
    if _NO_TABLE.fullmatch(statement):
        statement += " from dual"
    if several := _ROWS.fullmatch(statement):
        rows = several[2].strip("()").split("), (")
        statement = f"{several[1]} " + " union all ".join(f"select {row} from dual" for row in rows)
    if statement.startswith("create table"):
        for word, own in _TYPES.items():
            statement = statement.replace(word, own)
    numbers = iter(range(1, len(statement)))
    return _MARK.sub(lambda _: f":{next(numbers)}", statement)


def as_account(url: str, name: str, password: str) -> str:
    """Return the URL of another account in the same database."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}"))


def owner_in(url: str) -> str:
    """Return the account of a URL in upper case."""
    return (urlsplit(url).username or "").upper()


def number_of(error: Exception) -> int:
    """Return the server's number of an error, 0 for a driver error."""
    return int(getattr(error.args[0], "code", 0) or 0) if error.args else 0


def is_alive(session: Session) -> bool:
    """Return whether a session answers."""
    try:
        session.ping()
    except (oracledb.Error, OSError):
        return False
    return True


def accepts(url: str) -> bool:
    """Return whether the server accepts a session."""
    try:
        open_session(url, autocommit=True).close()
    except CannotConnect:
        return False
    return True


def new_password() -> str:
    """Return a new administrator's password."""
    return f"Aa1_{secrets.token_hex(12)}"
