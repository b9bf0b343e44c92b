"""The MariaDB server under test and a fresh database for each run."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pymysql

from benchmarks.engines.mysql.wire import BARE
from benchmarks.harness.runner import Installed
from rowq.engines.mysql.url import connection_parameters
from tests.engines.mysql.local import LocalMariaDB, find_programs

# Durable, with a log large enough that a full log never forces page writes.
SETTINGS = {
    "innodb-flush-log-at-trx-commit": "1",
    "innodb-doublewrite": "1",
    "innodb-buffer-pool-size": "1G",
    "innodb-log-file-size": "4G",
    "max-connections": "50",
}
_SHOWN = (
    *(name.replace("-", "_") for name in SETTINGS),
    "innodb_flush_method",
    "log_bin",
    "sync_binlog",
    "tx_isolation",
    "innodb_snapshot_isolation",
    "innodb_purge_threads",
)
_SETTLE_SECONDS = 30.0
_SHORT_HISTORY = 1000


class Lab:
    """A server without rowq; directory: on its disk, None if it is remote."""

    def __init__(self, url: str, directory: Path | None) -> None:
        self._url = url
        self.directory = directory
        with _cursor(self._url) as cursor:
            cursor.execute("show databases")
            there = {name for (name,) in cursor.fetchall()} & {"rowq", BARE}
        if there:
            raise RuntimeError(
                f"the server has a database {there.pop()} that is not the benchmark's"
            )

    def prepare(self, system: Installed) -> None:
        """Do nothing: MariaDB has no template databases, so each run installs the system."""

    @contextlib.contextmanager
    def database(self, system: Installed) -> Iterator[str]:
        """Install a system and drop it afterward."""
        self._drop()
        system.install(self._url)
        try:
            yield self._url
        finally:
            self._drop()

    def facts(self) -> dict[str, str]:
        """Return the server's version and settings."""
        with _cursor(self._url) as cursor:
            cursor.execute("select version()")
            ((version,),) = cursor.fetchall()
            cursor.execute("show global variables")
            settings = dict(cursor.fetchall())
        origin = "a given URL" if self.directory is None else "private, by the installed programs"
        shown = {name: settings[name] for name in _SHOWN if name in settings}
        return {"version": version, "origin": origin} | shown

    def _drop(self) -> None:
        """Drop the run's databases and wait until the server has purged old row versions."""
        with _cursor(self._url) as cursor:
            for name in ("rowq", BARE):
                cursor.execute(f"drop database if exists {name}")
            until = time.monotonic() + _SETTLE_SECONDS
            while _history(cursor) > _SHORT_HISTORY and time.monotonic() < until:
                time.sleep(0.1)


@contextlib.contextmanager
def open_lab(url: str | None, settings: Mapping[str, str] = SETTINGS) -> Iterator[Lab]:
    """Use the server at a URL, or start a private one in a temporary directory."""
    if url is not None:
        yield Lab(url, None)
        return
    local = LocalMariaDB(find_programs(), settings)
    try:
        yield Lab(local.url, local.home)
    finally:
        local.stop()


def _history(cursor: pymysql.cursors.Cursor) -> int:
    cursor.execute("show global status like 'Innodb_history_list_length'")
    ((_, length),) = cursor.fetchall()
    return int(length)


@contextlib.contextmanager
def _cursor(url: str) -> Iterator[pymysql.cursors.Cursor]:
    parameters = connection_parameters(url)
    with (
        pymysql.connect(**parameters, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor
