"""Migrations on MariaDB and MySQL.

Every statement that makes or removes a table or a routine commits by itself, so a migration is no
transaction: it may be run again after a crash at any statement, and is remembered at its end only.
A named lock of the session, whose name is a secret, lets one in at a time; no crash leaves it
behind.
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
    """A connection that runs whole scripts; all else is the driver's.

    Attributes:
        is_owned: whether the procedures that it makes run as rowq's own account.
    """

    is_owned = False

    def execute(self, text: str) -> None:
        """Run a script, one statement after the other."""
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
    look: Inspection

    @contextmanager
    def alone(self, *, installing: bool) -> Iterator[None]:
        """Hold migrations to one at a time, as soon as there is a table of ours."""
        self.run("preflight.sql")
        if installing:
            self.run("bookkeeping.sql")
        if "migration_lock" not in self.look.tables():
            yield
            return
        try:
            self.run("lock.sql")
        except pymysql.Error as error:
            if error.args[0] in _GONE:
                raise tables_in_use(": a rollback removed rowq meanwhile") from error
            raise
        try:
            yield
        finally:
            with suppress(pymysql.Error):
                self.connection.execute("do release_lock(@rowq_lock);")

    def prepare(self) -> None:
        """See to rowq's own account, and let it be the definer of what is made from now on."""
        self.connection.is_owned, notice = make_owner(
            self.connection, self.release.text("owner.sql")
        )
        if not self.connection.is_owned:
            self.run("caller.sql")
        self._say(notice)

    def mend(self) -> bool:
        """Make all routines anew where they run as the wrong account, or one is not as it was.

        After an upgrade of the server they lack what is for the newer version only.
        """
        look, files = self.look, self.release.files(self.installed)
        shipped, there = look.shipped(files), look.routines()
        wrong = set(look.orphans().values())
        if self.connection.is_owned:
            wrong |= look.definers() - {OWNER}
        missing = shipped.keys() - there.keys()
        aged = made_for_others(files, shipped, there)
        if wrong:
            why = f"they ran as {', '.join(sorted(wrong))}"
        elif missing:
            why = f"{', '.join(sorted(missing))} missing"
        elif aged:
            why = "they were made for another version of the server"
        else:
            return False
        for path, text in files.items():
            if path.startswith(("internal/", "routines/")):
                self.connection.execute(text)
        account = OWNER if self.connection.is_owned else look.account()
        self._say(f"all routines were made anew, to run as {account}: {why}")
        return True

    def losses(self) -> Losses:
        """Return what is lost when the tables are."""
        return self.look.losses_unchecked()

    def require_removable(self) -> None:
        """Refuse to remove what others have put into the database rowq."""
        look = self.look
        texts = self.release.files(self.installed).values()
        ours = {name for text in texts for _, name in created(text)} | set(BOOKKEEPING_TABLES)
        there = look.tables() | look.routines().keys() | look.others()
        if others := sorted(there - ours):
            raise SchemaInUse(
                f"{SchemaInUse.number} schema_in_use: the database rowq holds what rowq did not put"
                f" there: {', '.join(others)[:200]}"
            )

    def remove(self) -> None:
        """Remove what the migrations have left, and rowq's own account."""
        super().remove()
        self._say(drop_owner(self.connection))

    def run_grants(self, text: str) -> None:
        """Run grants.sql, and keep the server's warnings."""
        for statement in statements(text):
            cursor = self.connection.cursor()
            cursor.execute(statement)
            for level, _, warning in self.connection.show_warnings() or ():
                self._say(warning if level == "Warning" else None)

    def _say(self, notice: str | None) -> None:
        self.say([] if notice is None else [notice])
