"""What the server itself counts while processes work."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from benchmarks.rowq_bench.seeds.session import Row, open_session

_POSTGRES = """
    select d.deadlocks, d.xact_commit, d.blks_hit + d.blks_read
    from pg_stat_database d
    where d.datname = current_database()
"""
_POSTGRES_STATEMENTS = """
    select coalesce(sum(s.calls), 0)
    from pg_stat_statements s
    where s.dbid = (select d.oid from pg_database d where d.datname = current_database())
"""
_POSTGRES_WAITING = """
    select count(*)
    from pg_stat_activity a
    where a.datname = current_database() and a.wait_event_type = 'Lock'
"""
_MARIADB = (
    "Innodb_deadlocks",
    "Handler_commit",
    "Innodb_buffer_pool_read_requests",
    "Questions",
    "Innodb_row_lock_waits",
    "Innodb_row_lock_time",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counted by the server.

    commits: of transactions, reading ones included. pages: asked for from the buffer pool.
    statements: sent by clients; those inside a routine do not count. None: pg_stat_statements is
    not loaded. lock_waits: how often a session waited for a row; PostgreSQL keeps no account of it.
    lock_wait_seconds: how long all sessions waited together; on PostgreSQL estimated by looking.
    """

    deadlocks: int
    commits: int
    pages: int
    statements: int | None
    lock_waits: int | None
    lock_wait_seconds: float


class Watch(ABC):
    """Counts from `start` to `end`; `look` is to be called several times a second meanwhile."""

    def __init__(self, url: str) -> None:
        self._session = open_session(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, traceback)

    @abstractmethod
    def start(self) -> None:
        """Begin to count."""

    @abstractmethod
    def look(self) -> None:
        """Look who waits, where the server keeps no account of it."""

    @abstractmethod
    def end(self) -> Counts:
        """Return what was counted since the start; the sessions that worked must be closed."""


def watch(url: str) -> Watch:
    """Return a watch over the server of a URL; it is a context."""
    return _PostgresWatch(url) if url.startswith("postgres") else _MariaDBWatch(url)


class _PostgresWatch(Watch):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        loaded = "select current_setting('shared_preload_libraries')"
        self._counts_statements = "pg_stat_statements" in _text(self._session.run(loaded)[0])
        if self._counts_statements:
            self._session.script("create extension if not exists pg_stat_statements")
        self._before: list[int] = []
        self._looks: list[int] = []
        self._began = 0.0

    def start(self) -> None:
        self._looks = []
        self._began = time.monotonic()
        self._before = self._read()

    def look(self) -> None:
        self._looks += _numbers(self._session.run(_POSTGRES_WAITING))

    def end(self) -> Counts:
        seconds = time.monotonic() - self._began
        own = len(self._looks)
        waiting = sum(self._looks) / own if own else 0.0
        deadlocks, commits, pages, statements = (
            after - before for before, after in zip(self._before, self._read(), strict=True)
        )
        return Counts(
            deadlocks=deadlocks,
            commits=commits - own,
            pages=pages,
            statements=statements - own if self._counts_statements else None,
            lock_waits=None,
            lock_wait_seconds=round(waiting * seconds, 2),
        )

    def _read(self) -> list[int]:
        # Counters of sessions that have ended are there; this one's own are sent now.
        self._session.run("select pg_stat_force_next_flush()")
        self._session.run("select pg_stat_clear_snapshot()")
        found = _numbers(self._session.run(_POSTGRES))
        if self._counts_statements:
            return found + _numbers(self._session.run(_POSTGRES_STATEMENTS))
        return [*found, 0]


class _MariaDBWatch(Watch):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._before: dict[str, int] = {}

    def start(self) -> None:
        self._before = self._read()

    def look(self) -> None:
        """Do nothing: the server counts."""

    def end(self) -> Counts:
        after = self._read()
        deadlocks, commits, pages, statements, waits, wait_ms = (
            after[name] - self._before[name] for name in _MARIADB
        )
        return Counts(deadlocks, commits, pages, statements, waits, round(wait_ms / 1e3, 2))

    def _read(self) -> dict[str, int]:
        rows = self._session.run("show global status")
        status = {_text(row): row[1] for row in rows}
        return {name: int(status[name] or b"0") for name in _MARIADB}


def _numbers(rows: list[Row]) -> list[int]:
    (row,) = rows
    return [int(column or b"0") for column in row]


def _text(row: Row) -> str:
    return (row[0] or b"").decode()
