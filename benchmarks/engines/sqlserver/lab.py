"""The SQL Server under test: at a given URL, with a fresh database for each run."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.engines.sqlserver.session import SqlserverSession
from benchmarks.harness.closing import Closing
from benchmarks.harness.given import FreshDatabases
from rowq.errors import RowqError
from tests.engines.sqlserver.server import SqlserverServer

_VERSION = """
    select concat(
        N'SQL Server ', cast(serverproperty('ProductVersion') as nvarchar(128)), N', ',
        cast(serverproperty('Edition') as nvarchar(128))
    )
"""
_SETTINGS = """
    select c.name, cast(c.value_in_use as nvarchar(100))
    from sys.configurations c
    where c.name in (
        N'cost threshold for parallelism', N'max degree of parallelism', N'max server memory (MB)'
    )
    order by c.name
"""
_DATABASE = """
    select lower(d.recovery_model_desc), lower(d.delayed_durability_desc),
           iif(d.is_read_committed_snapshot_on = 1, N'on', N'off'), d.collation_name
    from sys.databases d
    where d.name = db_name()
"""
_DATABASE_WORDS = ("recovery", "delayed durability", "read_committed_snapshot", "collation")
QUERIES = (_VERSION, _SETTINGS, _DATABASE)


class Lab(FreshDatabases, Closing):
    """A server whose login may create databases."""

    def __init__(self, server: SqlserverServer) -> None:
        super().__init__(server)
        self.server = server

    def close(self) -> None:
        """Drop what is left."""
        self.server.close()

    def facts(self) -> dict[str, str]:
        """Return the server's version, its settings, and those of the databases made here."""
        with self.fresh() as url, SqlserverSession(url) as session:
            ((version,),) = session.run(_VERSION)
            (database,) = session.run(_DATABASE)
            settings = session.run(_SETTINGS)
        shown = [*settings, *zip(_DATABASE_WORDS, database, strict=True)]
        facts = {"version": _text(version), "origin": "a given URL"}
        return facts | {_text(name): _text(value) for name, value in shown}


@contextlib.contextmanager
def open_lab(url: str | None, _home: Path) -> Iterator[Lab]:
    """Use the server at a URL.

    Raises SystemExit without one, where the server does not answer, and where it is not
    Microsoft's, which the figures would not be of.
    """
    if url is None:
        raise SystemExit("SQL Server runs at a given URL only: --url sqlserver://...")
    try:
        server = SqlserverServer(url, "a given URL,")
    except RowqError as error:
        raise SystemExit(f"there is no SQL Server: {error}") from None
    with Lab(server) as lab:
        if "genuine" not in server.capabilities:
            raise SystemExit(f"{server.how}: it lacks the counters that the figures come from")
        yield lab


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
