"""An Oracle Database at a URL, and a fresh schema in it for each run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.engines.oracle.observe import RIGHTS
from benchmarks.harness.given import FreshDatabases
from rowq.errors import DriverMissing

if TYPE_CHECKING:
    from tests.engines.oracle import OracleServer

NEEDS_A_URL = "Oracle is measured where a URL is given: --url oracle://system:...@host:1521/service"
_NO_DRIVER = "Oracle needs python-oracledb: pip install 'rowq[oracle]'"
_SHOWN = (
    "commit_logging",
    "commit_wait",
    "cpu_count",
    "cursor_sharing",
    "db_block_size",
    "log_buffer",
    "memory_target",
    "optimizer_mode",
    "pga_aggregate_target",
    "sga_target",
    "undo_retention",
)
_PARAMETERS = "select p.name, p.display_value from v$parameter p order by p.name"
_LOG_MODE = "select d.log_mode from v$database d"


class OracleLab(FreshDatabases):
    """A server whose accounts are its databases; nobody else should be at work on it."""

    def __init__(self, server: OracleServer) -> None:
        super().__init__(server)
        self._server = server

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """Make an account that may be measured, and drop it with its schema afterwards."""
        from tests.engines.oracle_session import owner_in

        with super().fresh() as url:
            self._server.tell(f"grant {', '.join(RIGHTS)} to {owner_in(url)}")
            yield url

    def facts(self) -> dict[str, str]:
        """Return the server's version and settings."""
        parameters = {name: str(value) for name, value in self._server.ask(_PARAMETERS)}
        ((log_mode,),) = self._server.ask(_LOG_MODE)
        shown = {name: parameters[name] for name in _SHOWN if name in parameters}
        version = self._server.how.rpartition(" ")[2]
        return {"version": version, "origin": "a given URL", "log_mode": str(log_mode)} | shown


@contextlib.contextmanager
def open_lab(url: str | None, _home: Path) -> Iterator[OracleLab]:
    """Use the server at a URL, of an account that may create users, such as SYSTEM.

    Raises:
        ValueError: there is no URL; a private server cannot be had.
        DriverMissing: python-oracledb is not installed.
    """
    if url is None:
        raise ValueError(NEEDS_A_URL)
    try:
        # Only here: it loads the driver.
        from tests.engines.oracle import OracleServer
    except ImportError as error:
        raise DriverMissing(_NO_DRIVER) from error
    with contextlib.closing(OracleServer(url, "given URL,")) as server:
        yield OracleLab(server)
