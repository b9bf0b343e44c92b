"""PostgreSQL servers for tests."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.engines.base import GIVEN, Control, ControlledServer, wait_until


class PostgresServer(ControlledServer):
    """A PostgreSQL server, however it runs.

    url: of a superuser, or of a role that may create databases and roles.
    """

    engine = "postgres"
    product = "postgres"

    def __init__(self, url: str, how: str, control: Control = GIVEN) -> None:
        super().__init__(control)
        self._url = url
        self._databases: list[str] = []
        with self._admin() as connection:
            self.version = str(connection.info.parameter_status("server_version")).split()[0]
            major = connection.info.server_version // 10000  # the text may be 19rc1
        self.name = f"{self.engine}{major}"
        self.how = f"{how} {self.version}"
        self.capabilities = self._capabilities(
            "async",
            "cancel",
            "databases",
            "days",
            "genuine",
            "groups",
            "limits",
            "predecessors",
            "psql",
            "results",
            "topics",
            "expiry",
            "waits",
        )

    def fresh_database(self) -> str:
        return self._create("template0")

    def copy_of(self, url: str) -> str:
        """Copy a database that has no sessions, and return the URL of the copy."""
        return self._create(str(conninfo_to_dict(url)["dbname"]))

    def _create(self, template: str) -> str:
        name = f"rowq_test_{uuid.uuid4().hex[:12]}"
        with self._admin() as connection:
            create = sql.SQL("create database {} template {} encoding 'UTF8'")
            connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        self._databases.append(name)
        return with_database(self._url, name)

    def drop_database(self, url: str) -> None:
        name = str(conninfo_to_dict(url)["dbname"])
        with self._admin() as connection:
            drop = sql.SQL("drop database if exists {} with (force)")
            connection.execute(drop.format(sql.Identifier(name)))
        self._databases.remove(name)

    def connect(self, url: str, *, autocommit: bool = True) -> psycopg.Connection[Any]:
        return psycopg.connect(url, autocommit=autocommit)

    def session_id(self, connection: psycopg.Connection[Any]) -> int:
        return connection.info.backend_pid

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        query = """
            select pid, pg_blocking_pids(pid) from pg_stat_activity
            where wait_event_type = 'Lock' and pid <> pg_backend_pid()
            """
        with self._admin() as connection:
            return {pid: frozenset(blockers) for pid, blockers in connection.execute(query)}

    def waits_for_limit(self, session: int) -> bool:
        query = "select from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
        with self._admin() as connection:
            return connection.execute(query, [session]).fetchone() is not None

    def kill_session(self, session: int) -> None:
        with self._admin() as connection:
            connection.execute("select pg_terminate_backend(%s)", [session])

            def gone() -> bool:
                query = "select from pg_stat_activity where pid = %s"
                return connection.execute(query, [session]).fetchone() is None

            wait_until(gone, f"session {session} ends")

    def _drop_all(self) -> None:
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
