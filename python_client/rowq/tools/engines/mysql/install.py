"""Migrations on MariaDB and MySQL.

DDL commits, so a migration is not a transaction: it can be run again after a crash at any
statement, and is recorded at its end. A named lock of the session, with a secret name, lets one in
at a time; a crash releases it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pymysql

from rowq.tools.engines.mysql.script import (
    BOOKKEEPING,
    BOOKKEEPING_TABLES,
    OWNER,
    owned,
    replacing,
    statements,
)
from rowq.tools.engines.mysql.status import (
    Inspection,
    drop_owner,
    made_for_others,
    make_owner,
    refusal,
)
from rowq.tools.migrate.errors import SchemaInUse, tables_in_use
from rowq.tools.migrate.frozen import created
from rowq.tools.migrate.inspection import Losses
from rowq.tools.migrate.installer import BaseInstaller, ScriptConnection

_GONE = {1049, 1146}


class Connection(ScriptConnection):
    """A driver's connection that can also run whole scripts.

    Attributes:
        is_owned: whether the created procedures run as rowq_owner.
    """

    is_owned = False

    def execute(self, text: str) -> None:
        """Run the statements of a script."""
        cursor = self.driver_connection.cursor()
        parts = statements(owned(text) if self.is_owned else text)
        if "mariadb" in self.driver_connection.server_version.lower():
            parts = replacing(parts)
        for statement in parts:
            cursor.execute(statement)
            while cursor.nextset():
                pass


class Installer(BaseInstaller):
    """Installs and removes the migrations of a release."""

    BOOKKEEPING = BOOKKEEPING
    CONNECTION = Connection
    INSPECTION = Inspection
    REFUSAL = staticmethod(refusal)
    DatabaseError = pymysql.Error
    inspection: Inspection

    @contextmanager
    def alone(self, *, installing: bool) -> Iterator[None]:
        """Allow one migration at a time, once the table of the lock exists."""
        self.run("preflight.sql")
        if installing:
            self.run("bookkeeping.sql")
        if "migration_lock" not in self.inspection.tables():
            yield
            return
        try:
            self.run("lock.sql")
        except pymysql.Error as error:
            if error.args[0] in _GONE:
                raise tables_in_use(": a concurrent rollback removed rowq") from error
            raise
        try:
            yield
        finally:
            with suppress(pymysql.Error):
                self.connection.execute("do release_lock(@rowq_lock);")

    def prepare(self) -> None:
        """Create the account rowq_owner, the definer of new procedures."""
        self.connection.is_owned, notice = make_owner(
            self.connection, self.release.text("owner.sql")
        )
        if not self.connection.is_owned:
            self.run("caller.sql")
        self._add_notice(notice)

    def repair(self) -> bool:
        """Recreate all routines if their account is wrong, one is missing, or the server is newer.

        After an upgrade of the server they lack the code for the newer version.
        """
        inspection, files = self.inspection, self.release.files(self.installed)
        shipped, found = inspection.shipped(files), inspection.routines()
        wrong = set(inspection.orphans().values())
        if self.connection.is_owned:
            wrong |= inspection.definers() - {OWNER}
        missing = shipped.keys() - found.keys()
        if wrong:
            reason = f"they ran as {', '.join(sorted(wrong))}"
        elif missing:
            reason = f"{', '.join(sorted(missing))} missing"
        elif made_for_others(files, shipped, found):
            reason = "they were for another version of the server"
        else:
            return False
        for path, text in files.items():
            if path.startswith(("internal/", "routines/")):
                self.connection.execute(text)
        account = OWNER if self.connection.is_owned else inspection.account()
        self._add_notice(f"all routines were recreated, to run as {account}: {reason}")
        return True

    def losses(self) -> Losses:
        """Return what dropping the tables would delete."""
        return self.inspection.losses_unchecked()

    def require_removable(self) -> None:
        """Refuse to remove foreign objects in the database rowq."""
        inspection = self.inspection
        texts = self.release.files(self.installed).values()
        own = {name for text in texts for _, name in created(text)} | set(BOOKKEEPING_TABLES)
        found = inspection.tables() | inspection.routines().keys() | inspection.others()
        if foreign := sorted(found - own):
            raise SchemaInUse(
                f"{SchemaInUse.number} schema_in_use: the database rowq has objects that rowq did"
                f" not create: {', '.join(foreign)[:200]}"
            )

    def remove(self) -> None:
        """Remove the bookkeeping, the database and the account rowq_owner."""
        super().remove()
        self._add_notice(drop_owner(self.connection))

    def run_grants(self, text: str) -> None:
        """Run grants.sql, and keep the server's warnings."""
        for statement in statements(text):
            cursor = self.connection.cursor()
            cursor.execute(statement)
            for level, _, warning in self.connection.show_warnings() or ():
                self._add_notice(warning if level == "Warning" else None)

    def _add_notice(self, notice: str | None) -> None:
        self.add_notices([] if notice is None else [notice])
