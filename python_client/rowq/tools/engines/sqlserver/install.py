"""Migrations on SQL Server: each is one transaction with its bookkeeping.

An application lock of the session lets one in at a time; a crash releases it.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyodbc

from rowq.engines.sqlserver.driver import (
    message_of,
    numbers_of,
    rowq_error_of,
    signals_held,
    text_of,
)
from rowq.tools.engines.sqlserver.script import BOOKKEEPING, HOLD_MESSAGES, batches
from rowq.tools.engines.sqlserver.status import Inspection
from rowq.tools.migrate.errors import (
    BY_NUMBER,
    MigrationError,
    MissingPrivilege,
    SchemaInUse,
    tables_in_use,
)
from rowq.tools.migrate.inspection import Losses
from rowq.tools.migrate.installer import BaseInstaller, ScriptConnection

_LACKS_PRIVILEGE = {229, 230, 262, 297, 300, 916, 2760, 3701, 15151, 15247}
_BUSY = {1205, 1222}
_IN_USE = {3726, 3729, 3732, 15136, 15138}

# After a refusal by preflight.sql, the lock and the impersonation are already gone.
_LEAVE = """
if applock_mode(N'dbo', N'rowq.migrate', N'Session') <> N'NoLock'
    exec sys.sp_releaseapplock
        @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
"""


def refusal(error: pyodbc.Error) -> MigrationError | None:
    """Turn an error of a migration into a refusal; None for any other error."""
    if found := rowq_error_of(error):
        message, _, remedy = found.partition("\n")
        return BY_NUMBER[found[:5]](message, remedy or None)
    numbers, text = numbers_of(error), message_of(text_of(error))
    if numbers & _BUSY:
        return tables_in_use()
    if numbers & _IN_USE:
        return SchemaInUse(f"{SchemaInUse.number} schema_in_use: {text}")
    if numbers & _LACKS_PRIVILEGE:
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    return None


class Connection(ScriptConnection):
    """A driver's connection that can also run whole scripts."""

    def execute(self, text: str) -> list[str]:
        """Run the batches of a script; return the server's messages."""
        texts: list[str] = []
        for batch in batches(text):
            with signals_held(), closing(self.driver_connection.cursor()) as cursor:
                cursor.execute(batch)
                texts += _messages(cursor)
                while cursor.nextset():
                    texts += _messages(cursor)
        return texts


class Installer(BaseInstaller):
    """Installs and removes the migrations of a release, one transaction for each."""

    BOOKKEEPING = BOOKKEEPING
    CONNECTION = Connection
    INSPECTION = Inspection
    REFUSAL = staticmethod(refusal)
    DatabaseError = pyodbc.Error

    @contextmanager
    def alone(self, *, installing: bool) -> Iterator[None]:
        """Allow one migration at a time, in a transaction, and check preconditions."""
        try:
            self.run("preflight.sql")
            with self.engine.transaction(self.connection.driver_connection):
                if installing:
                    self.run("bookkeeping.sql")
                yield
        finally:
            with suppress(pyodbc.Error):
                self.connection.execute(_LEAVE)

    def losses(self) -> Losses:
        """Return what dropping the tables would delete, and block enqueue until then."""
        self.connection.execute(HOLD_MESSAGES)
        return super().losses()

    def run_grants(self, text: str) -> None:
        """Run grants.sql, and keep the server's messages."""
        self.add_notices(dict.fromkeys(self.connection.execute(text)))


def _messages(cursor: Any) -> list[str]:
    return [message_of(text) for _, text in cursor.messages or ()]
