"""Serves the tests of the seeds from a given SQL Server, and cuts them down on a Babelfish.

Babelfish counts nothing that the figures of SQL Server come from, knows neither `alter index` nor
`update statistics`, and has no numbers for deadlocks and lock timeouts. There the sessions leave
that out and know those by their words, and the observer counts nothing, so that the rest is tried;
no figure of it means anything.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks.engines.sqlserver.lab import Lab
from benchmarks.engines.sqlserver.observe import COUNTERS
from benchmarks.engines.sqlserver.session import SqlserverSession
from benchmarks.harness.observe import Counts, Observer
from benchmarks.harness.session import RetryError, Row, Session, Value
from benchmarks.studies.seeds.dialects import DIALECTS
from rowq.engines.sqlserver.driver import load_driver
from tests.engines.base import wait_until
from tests.engines.sqlserver.server import SqlserverServer

_LEFT_OUT = ("alter index all on ", "update statistics ", "exec rowq.CareForIndexes")
_PASSING = ("deadlock detected", "due to lock timeout", "could not serialize access")
_COUNTS = "sys.dm_os_performance_counters"


class BabelfishSession(SqlserverSession):
    """A session that runs what Babelfish has."""

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement; none that rebuilds indexes, and counters are all 0."""
        if statement.startswith(_LEFT_OUT):
            return []
        if _COUNTS in statement:
            return [(name.encode(), b"0") for name in COUNTERS]
        try:
            return super().run(statement, **values)
        except RuntimeError as error:
            if any(words in str(error) for words in _PASSING):
                raise RetryError(str(error)) from error
            raise


class BabelfishObserver(Observer):
    """An observer that counts nothing."""

    def __init__(self, url: str) -> None:
        self.url = url

    def close(self) -> None:
        """Do nothing."""

    def counts(self, session: Session | None = None) -> Counts:  # noqa: ARG002
        """Return nothing but zeros."""
        return Counts(0, 0, 0, 0, 0.0, 0, 0, 0.0)

    def rows_locked(self, session: Session) -> int:  # noqa: ARG002
        """Return 0."""
        return 0


class _PatientServer(SqlserverServer):
    """A Babelfish cannot throw sessions out of a database; those of killed workers end soon."""

    def drop_database(self, url: str) -> None:
        """Drop a database, as soon as nobody is in it any more."""
        wait_until(lambda: self._is_dropped(url), "the database is dropped", 30)

    def _is_dropped(self, url: str) -> bool:
        try:
            super().drop_database(url)
        except load_driver().Error as error:
            if not self.is_babelfish or "currently in use" not in str(error):
                raise
            return False
        return True


@contextlib.contextmanager
def open_given(url: str) -> Iterator[Lab]:
    """Use the server at a URL; if it is a Babelfish, with its sessions and its observer."""
    server = _PatientServer(url, "given URL,")
    with pytest.MonkeyPatch.context() as patch, Lab(server) as lab:
        if "genuine" not in server.capabilities:
            dialect = replace(
                DIALECTS["sqlserver"], open=BabelfishSession, observe=BabelfishObserver
            )
            patch.setitem(DIALECTS, "sqlserver", dialect)
        yield lab
