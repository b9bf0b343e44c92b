"""Migrations on Oracle; all names begin with rowq.

DDL commits, so a migration is not a transaction: it can be run again after a crash at any unit, and
is recorded at its end. A second session locks a table, because DDL releases the first one's locks.
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
    "RQ802": "Nothing was changed. Find out who created it, or use another account for rowq.",
    "RQ803": "Connect as the account that owns rowq, without owner= in the URL.",
}
_GRANT = "A DBA can grant it directly; a role does not suffice, because rowq runs without roles."

_LOCK = "lock table rowq_migration_lock in exclusive mode wait 60"


def refusal(error: oracledb.DatabaseError) -> MigrationError | None:
    """Turn an error of a migration into a refusal; None for any other error."""
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
    """A driver's connection that can also run whole scripts."""

    def execute(self, text: str) -> None:
        """Run the units of a script; a unit that was run before is not an error."""
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
    inspection: Inspection

    @contextmanager
    def alone(self, *, installing: bool) -> Iterator[None]:  # noqa: ARG002 - the lock is a table
        """Allow one migration at a time, and check preconditions."""
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
        """Run grants.sql, and add notices about what it left out."""
        super().run_grants(text)
        self.add_notices(
            (
                *self.inspection.missing_roles(self.inspection.roles()),
                *self.inspection.rights_beyond(),
            )
        )
