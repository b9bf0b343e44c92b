"""yoyo's backend for SQL Server, with everything of ours inside the schema rowq.

yoyo's own for ODBC speaks another dialect. What this one does:
- the bookkeeping tables are rowq.migration and rowq.migration_log, out of the way of others';
- a migration and its bookkeeping are one transaction on one connection: it is there or it is not;
- an application lock of the session instead of a row that outlives a crash.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyodbc
from yoyo.backends.base import DatabaseBackend

from rowq.migrate.errors import (
    BY_NUMBER,
    MigrationError,
    MissingPrivilege,
    SchemaInUse,
)
from rowq.migrate.frozen import GRANTS
from rowq.migrate.release import Numbered, Release
from rowq.migrate.shared import log_row, refusals, require_no_messages, tables_in_use
from rowq.sqlserver.engine import ENGINE
from rowq.sqlserver.errors import fault_of, numbers_of, text_of, words_of
from rowq.sqlserver.statements import HOLD_MESSAGES, batches, version_text
from rowq.sqlserver.status import Look

_LACKS_PRIVILEGE = {229, 230, 262, 297, 300, 916, 2760, 3701, 15151, 15247}
_BUSY = {1205, 1222}
_IN_USE = {3726, 3729, 3732, 15136, 15138}
# Where preflight.sql has refused, there is neither a lock nor another account any more.
_LEAVE = """
if applock_mode(N'dbo', N'rowq.migrate', N'Session') <> N'NoLock'
    exec sys.sp_releaseapplock
        @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
"""


class Connection:
    """A connection that runs whole scripts; yoyo sees the rest of the driver's."""

    def __init__(self, driver_connection: Any) -> None:
        self.driver_connection = driver_connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver_connection, name)

    def close(self) -> None:
        """Close, harmlessly when that has happened before."""
        ENGINE.close(self.driver_connection)

    def execute(self, text: str) -> list[str]:
        """Run a script, one batch after the other; return what the server said beside."""
        said: list[str] = []
        for batch in batches(text):
            with closing(self.driver_connection.cursor()) as cursor:
                cursor.execute(batch)
                said += _messages(cursor)
                while cursor.nextset():
                    said += _messages(cursor)
        return said

    def value(self, query: str) -> Any:
        """Return the one value of a query."""
        with closing(self.driver_connection.cursor()) as cursor:
            return cursor.execute(query).fetchone()[0]


class Backend(DatabaseBackend):  # type: ignore[misc]
    """Installs and removes the migrations of a release, one transaction for each.

    Args:
        url: the database's URL.
        release: the migrations to work with.

    Attributes:
        installed: the newest installed number, as of the last step.
        notices: messages of the server, each once.
    """

    driver_module = "pyodbc"
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
        return Connection(ENGINE.connect(url))

    def init_database(self) -> None:
        """Do nothing: yoyo would make its lock table and try out DDL here."""

    def ensure_internal_schema_updated(self) -> None:
        """Do nothing: bookkeeping.sql makes the tables."""

    @contextmanager
    def transaction(self, rollback_on_exit: bool = False) -> Iterator[None]:  # noqa: ARG002
        """Open none: one transaction is around each migration already."""
        yield

    @contextmanager
    def lock(self, timeout: float = 0) -> Iterator[None]:  # noqa: ARG002 - the time is in preflight
        """Hold migrations to one at a time; refuse what would fail."""
        try:
            self.connection.execute(self.release.text("preflight.sql"))
            yield
        finally:
            with suppress(pyodbc.Error):
                self.connection.execute(_LEAVE)

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:
        """Return the log's row."""
        return log_row(migration, operation, self.connection.value("select original_login()"))

    def step_up(self, target: int) -> int | None:
        """Install the next migration and return its number.

        When `target` is reached already: see to roles and rights once more, and return None.
        """
        with self._one_at_a_time():
            self.installed = self.release.installed(Look(self.connection).installed_ids())
            if self.installed >= target:
                self._grant(self.installed)
                return None
            numbered = self.release.get(self.installed + 1)
            self.connection.execute(self.release.text("bookkeeping.sql"))
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
        with self._one_at_a_time():
            self.installed = installed = self.release.installed(
                Look(self.connection).installed_ids()
            )
            target = max(installed - 1, 0) if target is None else target
            if installed <= target:
                return None, target
            numbered = self.release.get(installed)
            if numbered.loses_messages and not force:
                self._require_no_messages()
            numbered.migration.process_steps(self, "rollback")
            self.unmark_one(numbered.migration, log=False)
            if installed == 1:
                self.connection.execute(self.release.text("remove.sql"))
            else:
                self._settle(self.release.get(installed - 1))
                self.log_migration(numbered.migration, "rollback")
        self.installed = installed - 1
        return installed, target

    def _settle(self, numbered: Numbered) -> None:
        """Note what is installed now, and see to the rights of everything that is new."""
        self.connection.execute(version_text(numbered))
        self._grant(numbered.number)

    def _grant(self, number: int) -> None:
        said = self.connection.execute(self.release.files(number).get(GRANTS, ""))
        self.notices += [one for one in dict.fromkeys(said) if one not in self.notices]

    def _require_no_messages(self) -> None:
        self.connection.execute(HOLD_MESSAGES)
        require_no_messages(Look(self.connection).losses())

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Be alone, and in one transaction; errors that mean a refusal become refusals."""
        with (
            refusals(pyodbc.Error, _refusal),
            self.lock(),
            ENGINE.transaction(self.connection.driver_connection),
        ):
            yield


def _messages(cursor: Any) -> list[str]:
    return [words_of(text) for _, text in cursor.messages or ()]


def _refusal(error: pyodbc.Error) -> MigrationError | None:
    if found := fault_of(error):
        message, _, remedy = found.partition("\n")
        return BY_NUMBER[found[:5]](message, remedy or None)
    numbers, text = numbers_of(error), words_of(text_of(error))
    if numbers & _BUSY:
        return tables_in_use()
    if numbers & _IN_USE:
        return SchemaInUse(f"{SchemaInUse.number} schema_in_use: {text}")
    if numbers & _LACKS_PRIVILEGE:
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    return None
