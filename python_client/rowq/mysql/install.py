"""yoyo's MySQL backend, with everything of ours inside the database rowq.

Every statement that makes or removes a table or a routine commits by itself, so a migration is no
transaction: it may be run again after a crash at any statement, and is remembered at its end only.
What differs from yoyo's own backend, and why:
- the bookkeeping tables are rowq.migration and rowq.migration_log, out of the way of others';
- a named lock of the session instead of a row that outlives a crash; its name is a secret;
- steps that were done are not undone when a later one fails: they are done again next time.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymysql
from yoyo.backends.core.mysql import MySQLBackend

from rowq.engines import engine_for_url
from rowq.migrate.errors import SchemaInUse
from rowq.migrate.frozen import GRANTS, created
from rowq.migrate.release import Numbered, Release
from rowq.migrate.shared import log_row, refusals, require_no_messages, tables_in_use
from rowq.mysql.owner import drop_owner, make_owner
from rowq.mysql.refusals import refusal
from rowq.mysql.statements import (
    OWNER,
    owned,
    replacing,
    statements,
    version_text,
)
from rowq.mysql.status import BOOKKEEPING, Look, made_for_others, shipped_routines

_GONE = {1049, 1146}


class Connection:
    """A connection that runs whole scripts; yoyo sees the rest of the driver's.

    Attributes:
        is_owned: whether the procedures that it makes run as rowq's own account.
    """

    def __init__(self, driver_connection: Any) -> None:
        self.is_owned = False
        self._connection = driver_connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, text: str) -> Any:
        """Run a script, one statement after the other, and return the last one's cursor."""
        cursor = self._connection.cursor()
        parts = statements(owned(text) if self.is_owned else text)
        if "mariadb" in self._connection.server_version.lower():
            parts = replacing(parts)
        for statement in parts:
            cursor.execute(statement)
            while cursor.nextset():
                pass
        return cursor


class Backend(MySQLBackend):  # type: ignore[misc]
    """Installs and removes the migrations of a release.

    Args:
        url: the server's URL.
        release: the migrations to work with.

    Attributes:
        installed: the newest installed number, as of the last step.
        notices: warnings of the server, each once.
    """

    migration_table_quoted = "rowq.migration"
    log_table_quoted = "rowq.migration_log"
    has_transactional_ddl = True

    def __init__(self, url: str, release: Release) -> None:
        self.notices: list[str] = []
        self.installed = 0
        self.release = release
        super().__init__(url, "migration")

    def connect(self, url: str) -> Connection:
        """Connect in autocommit; raises CannotConnect."""
        return Connection(engine_for_url(url).connect(url))

    def init_database(self) -> None:
        """Do nothing: yoyo would make its lock table and try out DDL here."""

    def ensure_internal_schema_updated(self) -> None:
        """Do nothing: bookkeeping.sql makes the tables."""

    @contextmanager
    def transaction(self, rollback_on_exit: bool = False) -> Iterator[None]:  # noqa: ARG002
        """Open none: the first statement of a step would end it."""
        yield

    @contextmanager
    def lock(self, timeout: float = 0) -> Iterator[None]:  # noqa: ARG002 - the time is in lock.sql
        """Hold migrations to one at a time, as soon as there is a table of ours."""
        if "migration_lock" not in Look(self.connection).tables():
            yield
            return
        try:
            self.connection.execute(self.release.text("lock.sql"))
        except pymysql.Error as error:
            if error.args[0] in _GONE:
                raise tables_in_use(": a rollback removed rowq meanwhile") from error
            raise
        try:
            yield
        finally:
            with suppress(pymysql.Error):
                self.connection.execute("do release_lock(@rowq_lock);")

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:
        """Return the log's row."""
        return log_row(
            migration, operation, self.connection.execute("select user();").fetchone()[0]
        )

    def step_up(self, target: int) -> int | None:
        """Install the next migration and return its number.

        When `target` is reached already: see to roles and rights once more, and return None.
        """
        with refusals(pymysql.Error, refusal):
            self.connection.execute(self.release.text("preflight.sql"))
            self.connection.execute(self.release.text("bookkeeping.sql"))
            return self._step_up(target)

    def _step_up(self, target: int) -> int | None:
        with self.lock():
            self.installed = self.release.installed(Look(self.connection).installed_ids())
            self._make_owner()
            if self.installed >= target:
                self._adopt()
                self._grant(self.installed)
                return None
            numbered = self.release.get(self.installed + 1)
            numbered.migration.process_steps(self, "apply")
            self._settle(numbered)
            self.log_migration(numbered.migration, "apply")
            self.mark_one(numbered.migration, log=False)
        self.installed = numbered.number
        return numbered.number

    def step_down(self, target: int | None, *, force: bool) -> tuple[int | None, int | None]:
        """Remove the newest migration.

        Args:
            target: the number to stop at; None: one below the newest.
            force: also when messages are thrown away.

        Returns:
            The number removed (None: nothing was above the target), and the target.
        """
        with refusals(pymysql.Error, refusal):
            self.connection.execute(self.release.text("preflight.sql"))
            return self._step_down(target, force=force)

    def _step_down(self, target: int | None, *, force: bool) -> tuple[int | None, int | None]:
        with self.lock():
            self.installed = installed = self.release.installed(
                Look(self.connection).installed_ids()
            )
            target = max(installed - 1, 0) if target is None else target
            if installed <= target:
                return None, target
            numbered = self.release.get(installed)
            if numbered.loses_messages and not force:
                require_no_messages(Look(self.connection).losses_unchecked())
            if installed == 1:
                self._require_nothing_of_others()
            numbered.migration.process_steps(self, "rollback")
            if installed == 1:
                self.connection.execute(self.release.text("remove.sql"))
                self._say(drop_owner(self.connection))
            else:
                self._settle(self.release.get(installed - 1))
                self.log_migration(numbered.migration, "rollback")
                self.unmark_one(numbered.migration, log=False)
        self.installed = installed - 1
        return installed, target

    def _settle(self, numbered: Numbered) -> None:
        """Note what is installed now, and see to the rights of everything that is new."""
        self.connection.execute(version_text(numbered))
        self._grant(numbered.number)

    def _make_owner(self) -> None:
        """See to rowq's own account, and let it be the definer of what is made from now on."""
        self.connection.is_owned, notice = make_owner(
            self.connection, self.release.text("owner.sql")
        )
        if not self.connection.is_owned:
            self.connection.execute(self.release.text("caller.sql"))
        self._say(notice)

    def _adopt(self) -> None:
        """Make all routines anew where they run as the wrong account, or one is not as it was.

        After an upgrade of the server they lack what is for the newer version only.
        """
        look = Look(self.connection)
        shipped = shipped_routines(self.release, self.installed, look.server())
        there = look.routines()
        wrong = set(look.orphans().values())
        if self.connection.is_owned:
            wrong |= look.definers() - {OWNER}
        missing = shipped.keys() - there.keys()
        aged = made_for_others(self.release, self.installed, look.server(), there)
        if wrong:
            why = f"they ran as {', '.join(sorted(wrong))}"
        elif missing:
            why = f"{', '.join(sorted(missing))} missing"
        elif aged:
            why = "they were made for another version of the server"
        else:
            return
        for relative, text in self.release.files(self.installed).items():
            if relative.startswith(("internal/", "routines/")):
                self.connection.execute(text)
        account = OWNER if self.connection.is_owned else look.account()
        self._say(f"all routines were made anew, to run as {account}: {why}")

    def _say(self, notice: str | None) -> None:
        if notice is not None and notice not in self.notices:
            self.notices.append(notice)

    def _grant(self, number: int) -> None:
        for statement in statements(self.release.files(number).get(GRANTS, "")):
            cursor = self.connection.cursor()
            cursor.execute(statement)
            for level, _, text in self.connection.show_warnings() or ():
                self._say(text if level == "Warning" else None)

    def _require_nothing_of_others(self) -> None:
        look = Look(self.connection)
        texts = self.release.files(self.installed).values()
        ours = {name for text in texts for _, name in created(text)} | set(BOOKKEEPING)
        there = look.tables() | look.routines().keys() | look.others()
        if others := sorted(there - ours):
            raise SchemaInUse(
                f"{SchemaInUse.number} schema_in_use: the database rowq holds what rowq did not put"
                f" there: {', '.join(others)[:200]}"
            )
