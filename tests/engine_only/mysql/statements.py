"""Reads the statements inside procedures as a server ran them, and the plans it makes for them."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.engines.base import Connection

_LOGGED = """
    select convert(sql_text using utf8mb4) from mysql.slow_log
    where thread_id = %s order by start_time
"""
_INTO = re.compile(r"\binto\s+[pv]_\w+(\s*,\s*[pv]_\w+)*")
_TABLE = re.compile(r"\b(?:from|join|update|into)\s+rowq\.(\w+)(?:\s+([a-z])\b)?")
_EXPLAINED = ("select", "delete", "update", "insert", "with")


@dataclass(frozen=True, slots=True)
class Access:
    """The way in which a statement reads one of rowq's tables: a line of explain."""

    statement: str
    table: str
    type: str
    key: str | None
    extra: str


def run_by(admin: Connection, session: Connection, work: Callable[[], object]) -> list[str]:
    """Do some work in a session; return every statement that its procedures ran, values and all.

    The log of slow statements is the one that has those inside procedures, and as rows of a table.
    """
    session.execute("set session long_query_time = 0")
    if "mariadb" in session.server_version.lower():
        session.execute("set session slow_query_log = 1, log_slow_disabled_statements = ''")
        session.execute("set session log_slow_filter = ''")
    with _log_in_a_table(admin):
        work()
    found = admin.execute(_LOGGED, [session.thread_id()]).fetchall()
    admin.execute("truncate mysql.slow_log")
    return [text.decode() if isinstance(text, bytes) else str(text) for (text,) in found]


def accesses(admin: Connection, statement: str) -> list[Access]:
    """Return how a statement would read rowq's tables now; nothing where it reads none of them."""
    names = {alias or table: table for table, alias in _TABLE.findall(statement)}
    if not names or not statement.lstrip().startswith(_EXPLAINED):
        return []
    cursor = admin.cursor()
    cursor.execute(f"explain {_INTO.sub('', statement)}")
    columns = [column[0].lower() for column in cursor.description]
    lines = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return [
        Access(statement, names[line["table"]], line["type"], line["key"], line["extra"] or "")
        for line in lines
        if line["table"] in names and line["type"] is not None
    ]


@contextmanager
def _log_in_a_table(admin: Connection) -> Iterator[None]:
    ((output, is_on),) = admin.execute(
        "select @@global.log_output, @@global.slow_query_log"
    ).fetchall()
    admin.execute("set global log_output = 'TABLE'")
    admin.execute("set global slow_query_log = 1")
    try:
        yield
    finally:
        admin.execute("set global slow_query_log = %s", [is_on])
        admin.execute("set global log_output = %s", [output])
