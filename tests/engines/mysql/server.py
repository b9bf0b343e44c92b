"""MariaDB and MySQL servers for tests."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pymysql

from rowq.engines.mysql.url import connection_parameters
from tests.engines.base import GIVEN, Control, ControlledServer, Unavailable, wait_until

# The callers' own database; rowq's is always called `rowq`.
OWN = "rowq_test"
# InnoDB refreshes its list of lock waits only if it has not been read for this long.
_REFRESH_SECONDS = 0.105
# Makes the session numbers of several servers distinct.
_STRIDE = 10**12

_LOCK_WAITS = "select waiting_pid, blocking_pid from sys.innodb_lock_waits"
# Named locks and table locks: any session that holds one may be the blocker.
_NAMED_WAITS = """
    select id from information_schema.processlist
    where state in ('User lock', 'Waiting for table metadata lock', 'Waiting for backup lock')
    """
_NAMED_HOLDERS = "select thread_id from information_schema.metadata_lock_info"
_MYSQL_NAMED_HOLDERS = """
    select distinct t.processlist_id
    from performance_schema.metadata_locks l
    join performance_schema.threads t on t.thread_id = l.owner_thread_id
    where l.lock_status = 'GRANTED' and t.processlist_id is not null
    """
_NAPS = "select id from information_schema.processlist where id = %s and state = 'User sleep'"
_ALL_SESSIONS = "select id from information_schema.processlist"


class Session(pymysql.connections.Connection):
    """PyMySQL's connection with psycopg's `execute`; it can be closed twice."""

    def execute(self, statement: str, values: Any = ()) -> pymysql.cursors.Cursor:
        cursor = pymysql.cursors.Cursor(self)
        cursor.execute(statement, values or None)
        return cursor

    def close(self) -> None:
        if self.open:
            super().close()


def set_default_role(connection: Any, role: str, account: str) -> None:
    """Set an account's default role."""
    word = "for" if "mariadb" in connection.server_version.lower() else "to"
    connection.execute(f"set default role {role} {word} {account}")


class MysqlServer(ControlledServer):
    """A MariaDB or MySQL server, however it runs.

    url: of an administrator. spare: starts another server, for tests that need a private database
    `rowq`.
    """

    engine = "mysql"
    _numbers = itertools.count(1)

    def __init__(
        self,
        url: str,
        how: str,
        control: Control = GIVEN,
        *,
        spare: Callable[[], MysqlServer] | None = None,
    ) -> None:
        super().__init__(control)
        self._url = url
        self._spare = spare
        self._spares: list[MysqlServer] = []
        self._is_taken = False
        self._refreshed_at = 0.0
        self._base = next(self._numbers) * _STRIDE
        with self._admin() as connection:
            ((text,),) = connection.execute("select version()").fetchall()
        self.version = text.partition("-")[0]
        self.is_mariadb = "mariadb" in text.lower()
        series = ".".join(self.version.split(".")[:2])
        self.product = "mariadb" if self.is_mariadb else "mysql"
        self.name = f"{self.product}{series}"
        self.how = f"{how} {self.version}"
        spares = [] if spare is None else ["databases"]
        self.capabilities = self._capabilities(
            *(
                "cancel",
                "days",
                "expiry",
                "genuine",
                "groups",
                "limits",
                "predecessors",
                "results",
                "topics",
                "waits",
            ),
            *spares,
        )

    def fresh_database(self) -> str:
        """Return a URL without rowq: on this server, or on a spare one if this is in use."""
        if not self._is_taken:
            self._refuse_foreign()
            self._clear()
            with self._admin() as connection:
                connection.execute(f"create database {OWN} character set utf8mb4")
            self._is_taken = True
            return self._own_url()
        for server in self._spares:
            if not server._is_taken:
                return server.fresh_database()
        self._spares.append(self.another())
        return self._spares[-1].fresh_database()

    def another(self) -> MysqlServer:
        """Start another server, which the caller closes; raise Unavailable if this is at a URL."""
        if self._spare is None:
            raise Unavailable(f"{self.how} has only one database rowq, which is in use")
        return self._spare()

    def drop_database(self, url: str) -> None:
        for server in (self, *self._spares):
            if server._own_url() == url:
                server._clear()
                server._is_taken = False

    def connect(self, url: str, *, autocommit: bool = True) -> Session:
        return Session(**connection_parameters(url), autocommit=autocommit)

    def session_id(self, connection: Any) -> int:
        """Return a session's number, distinct among servers."""
        for server in (self, *self._spares):
            if connection_parameters(server._url)["port"] == connection.port:
                return int(server._base + connection.thread_id())
        return int(self._base + connection.thread_id())  # through a relay

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        found: dict[int, frozenset[int]] = {}
        for server in (self, *self._spares):
            for waiting, blockers in server._waits().items():
                found[server._base + waiting] = frozenset(
                    server._base + blocker for blocker in blockers
                )
        return found

    def waits_for_limit(self, session: int) -> bool:
        owner, number = self._owner(session)
        with owner._admin() as connection:
            return connection.execute(_NAPS, [number]).fetchone() is not None

    def kill_session(self, session: int) -> None:
        owner, number = self._owner(session)
        with owner._admin() as connection:
            with contextlib.suppress(pymysql.Error):
                connection.execute(f"kill {number}")

            def gone() -> bool:
                query = "select id from information_schema.processlist where id = %s"
                return connection.execute(query, [number]).fetchone() is None

            wait_until(gone, f"session {number} ends")

    def close(self) -> None:
        for server in self._spares:
            server.close()
        super().close()

    def _owner(self, session: int) -> tuple[MysqlServer, int]:
        """Return the server of a session, and its number there."""
        number = session % _STRIDE
        servers = (self, *self._spares)
        return next(server for server in servers if server._base + number == session), number

    def _drop_all(self) -> None:
        if self._is_taken:
            self._clear()

    def _waits(self) -> dict[int, set[int]]:
        time.sleep(max(0.0, self._refreshed_at + _REFRESH_SECONDS - time.monotonic()))
        with self._admin() as connection:
            found: dict[int, set[int]] = {}
            for waiting, blocking in connection.execute(_LOCK_WAITS).fetchall():
                found.setdefault(waiting, set()).add(blocking)
            self._refreshed_at = time.monotonic()
            for (waiting,) in connection.execute(_NAMED_WAITS).fetchall():
                found[waiting] = self._holders(connection) - {waiting}
        return found

    def _holders(self, connection: Session) -> set[int]:
        try:
            holders = _NAMED_HOLDERS if self.is_mariadb else _MYSQL_NAMED_HOLDERS
            rows = connection.execute(holders).fetchall()
        except pymysql.Error:
            rows = connection.execute(_ALL_SESSIONS).fetchall()
        return {int(session) for (session,) in rows}

    def _refuse_foreign(self) -> None:
        """Refuse a server at a URL that has rowq: it may be in use."""
        with self._admin() as connection:
            there = connection.execute("show databases like 'rowq'").fetchone()
        if there and self._control.stop is None:
            raise Unavailable(f"{self.how} already has a database rowq; use a server without")

    def _clear(self) -> None:
        """Drop rowq, its roles, and the tests' database and accounts."""
        with self._admin() as connection:
            connection.execute("drop database if exists rowq")
            connection.execute(f"drop database if exists {OWN}")
            for kind, user, host in self._accounts(connection):
                place = f"@'{host}'" if host else ""
                connection.execute(f"drop {kind} if exists '{user}'{place}")

    def _accounts(self, connection: Session) -> list[tuple[str, str, str]]:
        is_role = "is_role = 'Y'" if self.is_mariadb else "account_locked = 'Y'"
        rows = connection.execute(
            f"select user, host, {is_role} from mysql.user"
            " where user like 'rowq%%' and user <> substring_index(current_user(), '@', 1)"
        )
        return [("role" if role else "user", user, host) for user, host, role in rows.fetchall()]

    def _own_url(self) -> str:
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(path=f"/{OWN}"))

    @contextlib.contextmanager
    def _admin(self) -> Iterator[Session]:
        connection = Session(**connection_parameters(self._url), autocommit=True)
        try:
            yield connection
        finally:
            connection.close()
