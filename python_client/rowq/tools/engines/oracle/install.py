"""Migrations on Oracle, with everything of ours under names that begin with rowq.

Every statement of DDL commits by itself, so a migration is no transaction: it may be run again
after a crash at any unit, and is remembered at its end only. Who migrates keeps a table locked in a
second session: the first one loses its locks with every statement of DDL.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import oracledb

from rowq.tools.engines.oracle.script import BOOKKEEPING, forgiven, units
from rowq.tools.engines.oracle.status import Inspection
from rowq.tools.migrate.errors import BY_NUMBER, MigrationError, MissingPrivilege, tables_in_use
from rowq.tools.migrate.installer import BaseInstaller, ScriptConnection

_FAULT = re.compile(r"RQ8\d\d \w+[^\n]*")
_LACKS_PRIVILEGE = {1031, 1950, 41900}
_BUSY = {54, 60, 4021, 30006}
_REMEDIES = {
    "RQ801": "rowq needs Oracle Database 19c or newer.",
    "RQ802": "It was left alone. Look who made it, or give rowq another account.",
    "RQ803": "Connect as the account that owns rowq, without owner= in the URL.",
}
_GRANT = "A DBA can grant it; a role does not help, as rowq's own code runs without roles."

_LOCK = "lock table rowq_migration_lock in exclusive mode wait 60"


def refusal(error: oracledb.DatabaseError) -> MigrationError | None:
    """Return the refusal that an error of a migration is; None for any other error."""
    number, text = error.args[0].code, error.args[0].message
    if fault := _FAULT.search(text):
        name = fault.group()[:5]
        remedy = _GRANT if "grant execute" in fault.group() else _REMEDIES.get(name)
        return BY_NUMBER[name](fault.group(), remedy)
    if number in _LACKS_PRIVILEGE:
        return MissingPrivilege(
            f"{MissingPrivilege.number} missing_privilege: {text}",
            "The owner needs create session, table, sequence, type and procedure, and a quota.",
        )
    if number in _BUSY:
        return tables_in_use(", or another migration has not ended")
    return None


class Connection(ScriptConnection):
    """A connection that runs whole scripts; all else is the driver's."""

    def execute(self, text: str) -> None:
        """Run a script, one unit after the other; what was done before is no error."""
        for unit in units(text):
            with self.driver_connection.cursor() as cursor:
                try:
                    cursor.execute(unit)
                except oracledb.DatabaseError as error:
                    if error.args[0].code not in forgiven(unit):
                        raise


class Installer(BaseInstaller):
    """Installs and removes the migrations of a release."""

    BOOKKEEPING = BOOKKEEPING
    CONNECTION = Connection
    INSPECTION = Inspection
    REFUSAL = staticmethod(refusal)
    DatabaseError = oracledb.DatabaseError
    look: Inspection

    @contextmanager
    def alone(self, *, installing: bool) -> Iterator[None]:  # noqa: ARG002 - the lock is a table
        """Hold migrations to one at a time; refuse what would fail."""
        self.run("preflight.sql")
        self.run("bookkeeping.sql")
        self._holder = self.engine.connect(self.url)
        try:
            self._holder.autocommit = False
            with self._holder.cursor() as cursor:
                cursor.execute(_LOCK)
            yield
        finally:
            self.engine.close(self._holder)

    def remove(self) -> None:
        """Remove the bookkeeping; the locked table is one of its tables."""
        self.engine.close(self._holder)
        super().remove()

    def run_grants(self, text: str) -> None:
        """Run grants.sql, and say what it had to leave out."""
        super().run_grants(text)
        self.say((*self.look.missing_roles(self.look.roles()), *self.look.rights_beyond()))
