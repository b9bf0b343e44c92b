"""Notes what a server runs for one call, by what each engine tells of it."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.engines.mysql.session import MariadbSession
from benchmarks.engines.oracle.session import OracleSession
from benchmarks.engines.postgres.session import PostgresSession
from benchmarks.engines.sqlserver.session import SqlserverSession
from benchmarks.harness.closing import Closing
from benchmarks.harness.session import Session
from benchmarks.studies.statements.count import Count, counted

if TYPE_CHECKING:
    import psycopg

POSTGRES_SETTINGS = {"autovacuum": "off"}
MARIADB_SETTINGS = {
    "performance-schema": "ON",
    "performance-schema-max-sql-text-length": "8192",
    "performance-schema-events-statements-history-long-size": "10000",
}
"""The private servers' settings, besides the benchmarks' own."""


class Trace(Closing, ABC):
    """A session whose calls are looked into; url: of a database with rowq."""

    session: Session

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    @abstractmethod
    def watch(self, work: Callable[[], object]) -> Count:
        """Make one call in the session, and count what ran inside it."""


class PostgresTrace(Trace):
    """auto_explain tells nested statements, and the buffers of the call; a counter of functions."""

    _FUNCTIONS = (
        "select coalesce(sum(f.calls), 0)::bigint from pg_catalog.pg_stat_user_functions f"
        " where f.schemaname = 'rowq'"
    )
    _ON = (
        "load 'auto_explain'",
        "set track_functions = 'all'",
        "set auto_explain.log_nested_statements = on",
        "set auto_explain.log_analyze = on",
        "set auto_explain.log_buffers = on",
        "set auto_explain.log_timing = off",
        "set auto_explain.log_format = 'json'",
        "set auto_explain.log_level = 'notice'",
    )
    _FRAME = re.compile(r"^(?:PL/pgSQL|SQL) function .*", re.MULTILINE)

    def __init__(self, url: str) -> None:
        self.session = session = PostgresSession(url)
        self._ran: list[tuple[tuple[str, ...], str]] = []
        self._buffers = 0
        for statement in self._ON:
            session.connection.execute(statement)
        session.connection.add_notice_handler(self._note)

    def watch(self, work: Callable[[], object]) -> Count:
        """Make one call; kinds are told apart by the functions and lines that they stand in."""
        self._ran.clear()
        before = self._functions()
        self.session.run("set auto_explain.log_min_duration = 0")
        work()
        self.session.run("set auto_explain.log_min_duration = -1")
        # The call itself is one of the functions.
        return counted(self._ran, self._functions() - before - 1, self._buffers)

    def _functions(self) -> int:
        self.session.run("select pg_stat_force_next_flush()")
        ((calls,),) = self.session.run(self._FUNCTIONS)
        return int(calls or 0)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        _, mark, plan = (notice.message_primary or "").partition("plan:\n")
        if not mark:
            return
        shown = json.loads(plan)
        frames = tuple(self._FRAME.findall(notice.context or ""))
        if frames:
            self._ran.append(((*frames, shown["Query Text"]), shown["Query Text"].strip()))
        else:
            root = shown["Plan"]
            self._buffers = root["Shared Hit Blocks"] + root["Shared Read Blocks"]


class MariadbTrace(Trace):
    """The performance schema tells nested statements; InnoDB counts what is read from its pool."""

    _EVENTS = """
        select s.event_name, s.object_name, s.sql_text
        from performance_schema.events_statements_history_long s
        join performance_schema.threads t on t.thread_id = s.thread_id
        where t.processlist_id = :backend
          and s.event_name in ('statement/sp/stmt', 'statement/sp/copen')
    """
    _PAGES = "show global status like 'Innodb_buffer_pool_read_requests'"

    def __init__(self, url: str) -> None:
        self.session = MariadbSession(url)
        self._observer = MariadbSession(url)
        ((is_on,),) = self._observer.run("select @@performance_schema")
        if is_on != b"1":
            raise RuntimeError("the server runs without performance_schema")
        self._observer.run(
            "update performance_schema.setup_consumers set enabled = 'YES'"
            " where name like 'events_statements%'"
        )

    def close(self) -> None:
        """Close the sessions."""
        self._observer.close()
        super().close()

    def watch(self, work: Callable[[], object]) -> Count:
        """Make one call; a cursor is a statement when it is opened."""
        self._observer.run("truncate performance_schema.events_statements_history_long")
        before = self._pages()
        work()
        reads = self._pages() - before
        events = self._observer.run(self._EVENTS, backend=self.session.backend)
        ran = [
            (event, "select" if event[0] == b"statement/sp/copen" else (event[2] or b"").decode())
            for event in events
        ]
        calls = sum(text.lower().startswith("call ") for _, text in ran)
        return counted(ran, calls, reads)

    def _pages(self) -> int:
        ((_, pages),) = self._observer.run(self._PAGES)
        return int(pages or 0)


class _Cached(Trace):
    """An engine that counts how often each statement in its cache of plans has run."""

    cached: str
    calls: str | None
    pages: str

    def __init__(self, open_session: Callable[[str], Session], url: str) -> None:
        self.session, self._observer = open_session(url), open_session(url)

    def close(self) -> None:
        """Close the sessions."""
        self._observer.close()
        super().close()

    def watch(self, work: Callable[[], object]) -> Count:
        """Make one call; a statement that is not in the cache before counts from its first run."""
        before, calls_before, reads_before = self._look()
        work()
        after, calls, reads = self._look()
        ran = [
            (kind, text)
            for kind, (text, runs) in after.items()
            for _ in range(runs - before.get(kind, ("", 0))[1])
        ]
        # The call itself is one of the routines.
        found = counted(ran, calls - calls_before - 1 if self.calls else None)
        # Neither cache has statements about the transaction.
        return Count(found.statements, found.kinds, found.calls, None, reads - reads_before)

    def _look(self) -> tuple[dict[bytes | None, tuple[str, int]], int, int]:
        rows = self._observer.run(self.cached)
        plans = {kind: ((text or b"").decode(), int(runs or 0)) for kind, text, runs in rows}
        calls = int(self._observer.run(self.calls)[0][0] or 0) if self.calls else 0
        ((reads,),) = self._observer.run(self.pages, backend=self.session.backend)
        return plans, calls, int(reads or 0)


class SqlserverTrace(_Cached):
    """dm_exec_query_stats counts statements of procedures, dm_exec_procedure_stats these."""

    cached = """
        select concat(convert(varchar(130), s.sql_handle, 1), s.statement_start_offset),
               substring(t.text, s.statement_start_offset / 2 + 1, 4000),
               sum(s.execution_count)
        from sys.dm_exec_query_stats s
        cross apply sys.dm_exec_sql_text(s.sql_handle) t
        where t.dbid = db_id()
          and object_schema_name(t.objectid, t.dbid) = N'rowq'
        group by s.sql_handle, s.statement_start_offset, t.text
    """
    calls = """
        select coalesce(sum(p.execution_count), 0)
        from sys.dm_exec_procedure_stats p
        where p.database_id = db_id()
          and object_schema_name(p.object_id, p.database_id) = N'rowq'
    """
    pages = """
        select s.logical_reads from sys.dm_exec_sessions s where s.session_id = :backend
    """

    def __init__(self, url: str) -> None:
        super().__init__(SqlserverSession, url)


class OracleTrace(_Cached):
    """v$sql counts the runs of statements of packages, v$sesstat what the session has read."""

    cached = """
        select s.sql_id, substr(s.sql_text, 1, 100), sum(s.executions)
        from v$sql s
        where s.parsing_schema_name = sys_context('userenv', 'session_user')
          and s.program_id in (
              select o.object_id from user_objects o where o.object_name like 'ROWQ%'
          )
        group by s.sql_id, substr(s.sql_text, 1, 100)
    """
    calls = None
    pages = """
        select s.value
        from v$sesstat s
        join v$statname n on n.statistic# = s.statistic#
        where s.sid = :backend and n.name = 'session logical reads'
    """

    def __init__(self, url: str) -> None:
        super().__init__(OracleSession, url)


TRACES: dict[str, Callable[[str], Trace]] = {
    "postgres": PostgresTrace,
    "mariadb": MariadbTrace,
    "sqlserver": SqlserverTrace,
    "oracle": OracleTrace,
}
