"""Statements inside procedures as the server ran them, and their plans."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.engines.base import Connection

_LAST = "do 0"
_LOGGED = f"""
    select convert(sql_text using utf8mb4) from mysql.slow_log
    where thread_id = %s and convert(sql_text using utf8mb4) <> '{_LAST}' order by start_time
"""
_ON_MYSQL = """
    select s.sql_text
    from performance_schema.events_statements_history_long s
    join performance_schema.threads t on t.thread_id = s.thread_id
    where t.processlist_id = %s and s.event_name = 'statement/sp/stmt'
    order by s.event_id
"""
_CONSUMER = (
    "update performance_schema.setup_consumers set enabled = %s"
    " where name = 'events_statements_history_long'"
)
_VARIABLE = re.compile(r"\b[cpv]_(\w+)\b")
_MESSAGES = "'[[1, 11, 0, 1], [2, 11, 0, 2]]'"
_TIME = "timestamp'2020-01-01 00:00:00'"
_TIMES = {"before", "check_after", "day", "lease_until", "now", "until"}
_COMPARED = re.compile(r"(\w+(?:_at|_after|_until) *[<>=]+ *)[pv]_\w+")
_JSON = re.compile(r"json_(?!array|object|quote)\w+\((?:coalesce\()?\s*[pv]_(\w+)")
_IDS = {"free", "ids", "message_ids", "finished", "parts", "rest", "taken", "unknown"}
_INTO = re.compile(r"\binto\s+[pv]_\w+(\s*,\s*[pv]_\w+)*")
_TABLE = re.compile(r"\b(?:from|join|update|into)\s+rowq\.(\w+)(?:\s+([a-z])\b)?")
_EXPLAINED = ("select", "delete", "update", "insert", "with")
_NOT_READ = "Impossible ON condition"
"""MySQL's note about an outer join whose condition is always false."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a statement reads one of rowq's tables: a line of explain."""

    statement: str
    table: str
    type: str
    key: str | None
    extra: str


def run_by(admin: Connection, session: Connection, work: Callable[[], object]) -> list[str]:
    """Do some work in a session; return the statements of its procedures, with values.

    MariaDB's slow query log includes statements inside procedures. MySQL's does not; its
    performance schema has them, without values.
    """
    if "mariadb" not in session.server_version.lower():
        return _run_on_mysql(admin, session, work)
    session.execute("set session long_query_time = 0")
    session.execute("set session slow_query_log = 1, log_slow_disabled_statements = ''")
    session.execute("set session log_slow_filter = ''")
    with _log_in_a_table(admin):
        work()
        # The server logs a call after it has answered, but before the next statement.
        session.execute(_LAST)
    found = admin.execute(_LOGGED, [session.thread_id()]).fetchall()
    admin.execute("truncate mysql.slow_log")
    return [text.decode() if isinstance(text, bytes) else str(text) for (text,) in found]


def accesses(admin: Connection, statement: str) -> list[Access]:
    """Return how a statement would read rowq's tables now."""
    names = {alias or table: table for table, alias in _TABLE.findall(statement)}
    if not names or not statement.lstrip().startswith(_EXPLAINED):
        return []
    cursor = admin.cursor()
    # MySQL 9 would print a tree.
    form = "" if "mariadb" in admin.server_version.lower() else "format = traditional "
    cursor.execute(f"explain {form}{_INTO.sub('', statement)}")
    columns = [column[0].lower() for column in cursor.description]
    lines = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    if "select" in statement and statement.lstrip().startswith("insert"):
        # MySQL also names the table that is written.
        lines = [line for line in lines if line["select_type"] != "INSERT"]
    return [
        Access(statement, names[line["table"]], line["type"], line["key"], line["extra"] or "")
        for line in lines
        if line["table"] in names and line["type"] is not None and line["extra"] != _NOT_READ
    ]


def _run_on_mysql(admin: Connection, session: Connection, work: Callable[[], object]) -> list[str]:
    """Do the same on MySQL, with likely values instead of variables."""
    admin.execute("truncate performance_schema.events_statements_history_long")
    admin.execute(_CONSUMER, ["YES"])
    try:
        work()
        found = admin.execute(_ON_MYSQL, [session.thread_id()]).fetchall()
    finally:
        admin.execute(_CONSUMER, ["NO"])
    if any(text.endswith("...") for (text,) in found):
        pytest.skip(
            "the server cuts statements off; to run it: a private server, or a server with"
            " performance_schema_max_sql_text_length = 8192"
        )
    ((queue_id,),) = admin.execute("select max(queue_id) from rowq.queue_lock").fetchall()
    texts = [_COMPARED.sub(rf"\1{_TIME}", _INTO.sub("", text)) for (text,) in found]
    lists = set(_JSON.findall(" ".join(texts)))
    return [_VARIABLE.sub(lambda name: _value(name[1], queue_id, lists), text) for text in texts]


def _value(name: str, queue_id: int, lists: set[str]) -> str:
    """Return a likely value of a variable; `lists` are the names of those that hold JSON."""
    if name == "queue_id":
        return str(queue_id)
    if name in _TIMES or name.endswith("_at"):
        return _TIME
    if name in _IDS:
        return "'[1, 2]'"
    return _MESSAGES if name in lists else "1"


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
