"""The PostgreSQL server under test and a fresh database for each run."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from benchmarks.harness.runner import Installed
from rowq.tools.local_postgres.server import LocalPostgres

# Durable, with a log large enough that no checkpoint runs during a measurement.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
    "max_connections": "50",
}
_SHOWN = [*SETTINGS, "wal_level", "wal_compression", "autovacuum", "autovacuum_naptime", "jit"]


class Lab:
    """A server with a template database for each system.

    url: of a role with CREATEDB. local, directory: the private server, if it is one.
    """

    def __init__(
        self, url: str, local: LocalPostgres | None, directory: Path | None = None
    ) -> None:
        self.url = url
        self.local = local
        self.directory = directory
        self._mark = f"rowq_bench_{uuid.uuid4().hex[:8]}"
        self._made: list[str] = []

    def prepare(self, system: Installed) -> None:
        """Install a system in its own template, once."""
        if f"{self._mark}_{system.name}" not in self._made:
            name = self._create(f"{self._mark}_{system.name}", "template0")
            system.install(self._at(name))

    @contextlib.contextmanager
    def database(self, system: Installed) -> Iterator[str]:
        """Create a database from the system's template and drop it afterward."""
        name = self._create(f"{self._mark}_{system.name}_run", f"{self._mark}_{system.name}")
        try:
            yield self._at(name)
        finally:
            self._drop(name)

    def facts(self) -> dict[str, str]:
        """Return the server's version and settings."""
        with self._admin() as connection:
            version = str(connection.info.parameter_status("server_version")).split()[0]
            shown = connection.execute(
                "select name, current_setting(name) from pg_settings where name = any (%s)"
                " order by name",
                [_SHOWN],
            ).fetchall()
        origin = f"private, by {self.local.origin}" if self.local else "a given URL"
        return {"version": version, "origin": origin} | dict(shown)

    def close(self) -> None:
        """Drop all created databases; rowq's roles stay."""
        for name in list(self._made):
            self._drop(name)

    def _create(self, name: str, template: str) -> str:
        with self._admin() as connection:
            create = "create database {} template {} encoding 'UTF8'"
            names = [sql.Identifier(name), sql.Identifier(template)]
            connection.execute(sql.SQL(create).format(*names))
        self._made.append(name)
        return name

    def _drop(self, name: str) -> None:
        with self._admin() as connection:
            drop = sql.SQL("drop database if exists {} with (force)")
            connection.execute(drop.format(sql.Identifier(name)))
        self._made.remove(name)

    def _at(self, name: str) -> str:
        # rowq expects a URL, so put the database's name into it.
        before, mark, options = self.url.partition("?")
        scheme, _, rest = before.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/{name}{mark}{options}"

    def _admin(self) -> psycopg.Connection:
        return psycopg.connect(make_conninfo(self.url), autocommit=True)


@contextlib.contextmanager
def open_lab(
    url: str | None, home: Path, settings: Mapping[str, str], major: int = 18
) -> Iterator[Lab]:
    """Use the server at a URL, or start a private PostgreSQL in a directory."""
    with contextlib.ExitStack() as stack:
        local = None
        if url is None:
            local = stack.enter_context(LocalPostgres(home, major, settings))
            url = local.url
        lab = Lab(url, local, None if local is None else home)
        stack.callback(lab.close)
        yield lab
