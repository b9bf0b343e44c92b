"""Babelfish servers for tests: settings, functions and rewritten migrations."""

from dataclasses import replace
from typing import Any

from rowq.tools.engines.sqlserver import doctor, install, status
from rowq.tools.engines.sqlserver.script import batches
from tests.engines.sqlserver.babelfish_rules import rewrite

IS_BABELFISH = "select cast(serverproperty('babelfish') as int)"
# Let Babelfish ignore storage options and the like.
_SETTINGS = """
    exec sp_babelfish_configure N'babelfishpg_tsql.escape_hatch_%', N'ignore', N'server'
"""
# The client calls this function, which Babelfish lacks; unqualified names are searched in dbo.
_FUNCTIONS = """
    create function dbo.current_transaction_id() returns bigint as begin return txid_current(); end
"""


def is_babelfish(driver_connection: Any) -> bool:
    """Return whether a pyodbc connection is to a Babelfish."""
    return bool(driver_connection.execute(IS_BABELFISH).fetchval())


def prepare_server(driver_connection: Any) -> None:
    """Let a server ignore unsupported storage options."""
    driver_connection.execute(_SETTINGS)


def prepare_database(driver_connection: Any) -> None:
    """Create the functions that the client calls in a new database."""
    driver_connection.execute(_FUNCTIONS)


def teach_migrations() -> None:
    """Make this process's migrations rewrite their SQL for Babelfish.

    Babelfish has no EXECUTE AS and no user without a login: dbo owns everything.
    """
    status.OWNER, status.AS_DBO, status.AND_BACK = "dbo", "", ""
    doctor.CHECKS = replace(doctor.CHECKS, before=None, after=None)
    if install.Connection.execute is not _execute:
        install.Connection.execute = _execute  # type: ignore[method-assign]


_original = install.Connection.execute


def _execute(self: install.Connection, text: str) -> list[str]:
    if is_babelfish(self.driver_connection):
        text = "\ngo\n".join(rewrite(batch) for batch in batches(text))
    return _original(self, text)
