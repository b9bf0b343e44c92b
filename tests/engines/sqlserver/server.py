"""SQL Server and Babelfish servers for tests."""

import contextlib
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rowq.engines.sqlserver.engine import ENGINE
from rowq.errors import RowqError
from tests.engines.base import GIVEN, Control, ControlledServer, Unavailable, wait_until
from tests.engines.sqlserver.deadlocks import graphs_since

_RELEASES = {"14": "2017", "15": "2019", "16": "2022", "17": "2025"}
_AZURE = {5: "Azure SQL Database", 8: "Azure SQL Managed Instance"}
_WHAT = """
    select cast(serverproperty('ProductVersion') as nvarchar(128)),
        cast(serverproperty('Edition') as nvarchar(128)),
        cast(serverproperty('EngineEdition') as int),
        cast(serverproperty('babelfish') as int),
        @@version
    """
_WAITS = """
    select w.session_id, w.blocking_session_id
    from sys.dm_os_waiting_tasks w
    where w.blocking_session_id is not null and w.wait_type like 'LCK%'
    """
_PAUSES = """
    select 1
    from sys.dm_exec_requests r
    where r.session_id = ?
      and r.wait_type = 'WAITFOR'
    """
_DATA_FILES = "select f.name, f.size from sys.database_files f where f.type_desc = 'ROWS'"
_PAGE_BYTES, _MEGABYTE = 8192, 1 << 20
# Babelfish shows waits only in PostgreSQL's views.
_BABELFISH_WAITS = """
    select a.pid, array_to_string(pg_blocking_pids(a.pid), ',')
    from pg_catalog.pg_stat_activity a
    where a.wait_event_type = 'Lock'
    """


@dataclass(frozen=True)
class Setting:
    """How to create databases: clauses and options of the database, and server settings."""

    words: str
    create: str = "collate Latin1_General_100_CS_AS"
    options: tuple[str, ...] = ("set read_committed_snapshot on with rollback immediate",)
    before: tuple[str, ...] = ()


# A case-sensitive collation reveals names spelled in two ways. Row versions are Azure SQL's
# default, and harder for a queue than locks.
_PLAIN = Setting("")
_OPTIONS = ("set allow_snapshot_isolation on", "set recovery simple")
SETTINGS = {
    "locks": Setting("without row versions, a server's default", options=()),
    "american": Setting("in the collation of most servers", "collate SQL_Latin1_General_CP1_CI_AS"),
    "turkish": Setting("in Turkish, whose i and I differ", "collate Turkish_100_CI_AS"),
    "utf": Setting("in UTF-8", "collate Latin1_General_100_CI_AS_SC_UTF8"),
    "contained": Setting(
        "contained, whose catalog has its own collation",
        "containment = partial collate Latin1_General_100_CS_AS",
        before=("exec sys.sp_configure N'contained database authentication', 1", "reconfigure"),
    ),
    "compatible": Setting(
        "with the compatibility level of SQL Server 2017",
        options=(*_PLAIN.options, "set compatibility_level = 140"),
    ),
}
"""Settings by the word in a server's name, such as sqlserver_turkish2022."""


class SqlserverServer(ControlledServer):
    """A server that speaks T-SQL, however it runs.

    url: of a login that may create databases. made: the names of all databases created here,
    including dropped ones.
    """

    engine = "sqlserver"

    def __init__(self, url: str, how: str, control: Control = GIVEN, setting: str = "") -> None:
        super().__init__(control)
        self.url = url
        self._setting = SETTINGS[setting] if setting else _PLAIN
        self.made: list[str] = []
        self._databases: list[str] = []
        self._sessions: list[tuple[Any, int]] = []
        with self._admin() as connection:
            version, edition, kind, babelfish, text = connection.execute(_WHAT).fetchone()
            self.is_babelfish = bool(babelfish) or "babelfish" in text.lower()
            if self.is_babelfish:
                _shim().prepare_server(connection)
                _shim().teach_migrations()
        self.product = "babelfish" if self.is_babelfish else "sqlserver"
        self.name = self.product + (_babelfish(text) if self.is_babelfish else _series(version))
        what = f"SQL Server {version}, {_AZURE.get(kind, edition)}"
        if setting:
            self.name = self.name.replace("sqlserver", f"sqlserver_{setting}")
            what += f", databases {self._setting.words}"
        self.how = f"{how} {babelfish_words(text) if self.is_babelfish else what}"
        genuine = [] if self.is_babelfish else ["genuine", "waits"]
        self.capabilities = self._capabilities(
            *(
                "cancel",
                "databases",
                "days",
                "expiry",
                "groups",
                "limits",
                "predecessors",
                "results",
                "topics",
            ),
            *genuine,
        )

    def fresh_database(self) -> str:
        name = f"rowq_test_{uuid.uuid4().hex[:12]}"
        setting = self._setting
        with self._admin() as connection:
            for statement in setting.before:
                connection.execute(statement)
            create = "" if self.is_babelfish else f" {setting.create}"
            connection.execute(f"create database {name}{create}")
            self.made.append(name)
            self._databases.append(name)
            for option in () if self.is_babelfish else (*setting.options, *_OPTIONS):
                connection.execute(f"alter database {name} {option}")
        url = with_database(self.url, name)
        if self.is_babelfish:
            with contextlib.closing(ENGINE.connect(url)) as connection:
                _shim().prepare_database(connection)
        return url

    def drop_database(self, url: str) -> None:
        name = urlsplit(url).path.lstrip("/")
        with self._admin() as connection:
            if not self.is_babelfish:
                connection.execute(f"alter database {name} set single_user with rollback immediate")
            connection.execute(f"drop database {name}")
        self._databases.remove(name)

    def connect(self, url: str, *, autocommit: bool = True) -> Any:
        connection = ENGINE.connect(url)
        self._sessions = [pair for pair in self._sessions if not pair[0].closed]
        self._sessions.append((connection, _number(connection)))
        connection.autocommit = autocommit
        return connection

    def session_id(self, connection: Any) -> int:
        """Return a session's number; a session not opened here must be idle."""
        known = (number for session, number in self._sessions if session is connection)
        return next(known, None) or _number(connection)

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        found: dict[int, set[int]] = {}
        with self._admin() as connection:
            if self.is_babelfish:
                rows = connection.execute(_BABELFISH_WAITS).fetchall()
                return {pid: frozenset(map(int, blockers.split(","))) for pid, blockers in rows}
            for waiting, blocking in connection.execute(_WAITS).fetchall():
                found.setdefault(waiting, set()).add(blocking)
        return {waiting: frozenset(blockers) for waiting, blockers in found.items()}

    def waits_for_limit(self, session: int) -> bool:
        if self.is_babelfish:
            return session in self.waiting_sessions()
        with self._admin() as connection:
            return connection.execute(_PAUSES, session).fetchone() is not None

    def deadlocks_since(self, since: datetime) -> list[str]:
        """Return the deadlock graphs since a time."""
        if self.is_babelfish:
            return []
        with self._admin() as connection:
            return graphs_since(connection, since)

    def kill_session(self, session: int) -> None:
        with self._admin() as connection:
            with contextlib.suppress(Exception):
                connection.execute(f"kill {int(session)}")

            def gone() -> bool:
                query = "select 1 from sys.dm_exec_sessions where session_id = ?"
                return connection.execute(query, session).fetchone() is None

            wait_until(gone, f"session {session} ends")

    def limit_space(self, url: str, spare_bytes: int | None) -> None:
        """Limit the growth of a database's data files, None for no limit.

        Files grow in small steps, so that their free space does not exceed the limit.
        """
        if self.is_babelfish:
            raise Unavailable("a Babelfish database has no data files")
        with contextlib.closing(ENGINE.connect(url)) as connection:
            for name, pages in connection.execute(_DATA_FILES).fetchall():
                limit = "unlimited"
                if spare_bytes is not None:
                    limit = f"{-(-(pages * _PAGE_BYTES + spare_bytes) // _MEGABYTE)}MB"
                quoted = name.replace("'", "''")
                options = f"name = N'{quoted}', maxsize = {limit}, filegrowth = 1MB"
                try:
                    connection.execute(f"alter database current modify file ({options})")
                except Exception as error:
                    raise Unavailable(f"cannot limit the data files: {error}") from None

    def _drop_all(self) -> None:
        for name in list(self._databases):
            self.drop_database(with_database(self.url, name))

    @contextlib.contextmanager
    def _admin(self) -> Iterator[Any]:
        connection = ENGINE.connect(self.url)
        try:
            yield connection
        finally:
            connection.close()


def with_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _shim() -> ModuleType:
    """Return the Babelfish module, which loads the driver."""
    return import_module("tests.engines.sqlserver.babelfish")


def _number(connection: Any) -> int:
    return int(connection.execute("select @@spid").fetchval())


def accepts(url: str) -> bool:
    """Return whether the server takes a session."""
    try:
        ENGINE.connect(url).close()
    except RowqError:
        return False
    return True


def babelfish_words(text: str) -> str:
    """Return a description of a Babelfish from its @@version."""
    found = re.search(r"PostgreSQL [\d.]+", text)
    return f"Babelfish {_babelfish(text)} ({found[0] if found else 'unknown'}), not SQL Server"


def _babelfish(text: str) -> str:
    """Return Babelfish's version from its @@version."""
    found = re.search(r"Babelfish (\d+\.\d+)", text)
    return found[1] if found else "0"


def _series(version: str) -> str:
    """Return the year in a release's name."""
    major = version.partition(".")[0]
    return _RELEASES.get(major, major)
