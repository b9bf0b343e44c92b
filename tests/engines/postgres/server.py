"""A running PostgreSQL server, as the tests need it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.engines.base import Unavailable, wait_until
from tests.engines.logs import LOGS


class PostgresServer:
    """A PostgreSQL server, however it runs.

    url: of a superuser, or of a role that may create databases and roles.
    stop, crash, restart: how to do that, None where it cannot be done. log: the file that a private
    server writes to.
    """

    engine = "postgres"
    product = "postgres"

    def __init__(
        self,
        url: str,
        how: str,
        *,
        stop: Callable[[], None] | None = None,
        crash: Callable[[], None] | None = None,
        restart: Callable[[], None] | None = None,
        log: Path | None = None,
    ) -> None:
        self._url = url
        self._stop = stop
        self._crash = crash
        self._restart = restart
        self._databases: list[str] = []
        with self._admin() as connection:
            self.version = str(connection.info.parameter_status("server_version")).split()[0]
        self.name = f"{self.engine}{self.version.partition('.')[0]}"
        self.how = f"{how} {self.version}"
        self.capabilities = frozenset(
            ["async", "databases", "days", "genuine", "psql", "waits"]
            + ["restart"] * (restart is not None)
            + ["log"] * (log is not None)
        )
        if log is not None:
            LOGS.add(log, self.name)

    def fresh_database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"rowq_test_{uuid.uuid4().hex[:12]}"
        with self._admin() as connection:
            create = sql.SQL("create database {} template template0 encoding 'UTF8'")
            connection.execute(create.format(sql.Identifier(name)))
        self._databases.append(name)
        return with_database(self._url, name)

    def drop_database(self, url: str) -> None:
        """Drop a database made by fresh_database, whoever is connected to it."""
        name = str(conninfo_to_dict(url)["dbname"])
        with self._admin() as connection:
            drop = sql.SQL("drop database if exists {} with (force)")
            connection.execute(drop.format(sql.Identifier(name)))
        self._databases.remove(name)

    def connect(self, url: str, *, autocommit: bool = True) -> psycopg.Connection[Any]:
        """Open a session."""
        return psycopg.connect(url, autocommit=autocommit)

    def session_id(self, connection: psycopg.Connection[Any]) -> int:
        """Return the backend's pid."""
        return connection.info.backend_pid

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock at this moment, and whom each waits for."""
        query = """
            select pid, pg_blocking_pids(pid) from pg_stat_activity
            where wait_event_type = 'Lock' and pid <> pg_backend_pid()
            """
        with self._admin() as connection:
            return {pid: frozenset(blockers) for pid, blockers in connection.execute(query)}

    def kill_session(self, session: int) -> None:
        """End a session from outside, and wait until the server has forgotten it."""
        with self._admin() as connection:
            connection.execute("select pg_terminate_backend(%s)", [session])

            def gone() -> bool:
                query = "select from pg_stat_activity where pid = %s"
                return connection.execute(query, [session]).fetchone() is None

            wait_until(gone, f"session {session} ends")

    def crash(self) -> None:
        """End the server as a power failure would."""
        if self._crash is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be killed from here")
        self._crash()

    def restart(self) -> None:
        """Stop the server if it runs, and start it again under the same URLs."""
        if self._restart is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be restarted from here")
        self._restart()

    def close(self) -> None:
        """Drop what was made, and stop the server if it was started here."""
        if self._stop is not None:
            self._stop()
            return
        for name in list(self._databases):
            self.drop_database(with_database(self._url, name))

    @contextlib.contextmanager
    def _admin(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=10) as connection:
            yield connection


def with_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    before, mark, options = url.partition("?")
    scheme, _, rest = before.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{name}{mark}{options}"
