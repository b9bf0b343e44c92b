"""A Babelfish server for the tests: what has to be made in it, and rewritten on the way there."""

from dataclasses import replace
from typing import Any

from rowq.tools.engines.sqlserver import doctor, install, status
from rowq.tools.engines.sqlserver.script import batches
from tests.engines.sqlserver.babelfish_rules import rewrite

IS_BABELFISH = "select cast(serverproperty('babelfish') as int)"
# Options of storage and the like, which Babelfish leaves out when it is told to.
_SETTINGS = """
    exec sp_babelfish_configure N'babelfishpg_tsql.escape_hatch_%', N'ignore', N'server'
"""
# The client asks for it, and Babelfish lacks it; names without a schema are looked up in dbo too.
_FUNCTIONS = """
    create function dbo.current_transaction_id() returns bigint as begin return txid_current(); end
"""


def is_babelfish(driver_connection: Any) -> bool:
    """Whether a connection of pyodbc's leads to a Babelfish."""
    return bool(driver_connection.execute(IS_BABELFISH).fetchval())


def prepare_server(driver_connection: Any) -> None:
    """Let a server leave out what it cannot store differently."""
    driver_connection.execute(_SETTINGS)


def prepare_database(driver_connection: Any) -> None:
    """Make what the client calls in a new database."""
    driver_connection.execute(_FUNCTIONS)


def teach_migrations() -> None:
    """From now on, migrations of this process rewrite what they send to a Babelfish.

    It has no EXECUTE AS and no user without a login: everything belongs to dbo there.
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
