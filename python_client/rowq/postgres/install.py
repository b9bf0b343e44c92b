"""yoyo's PostgreSQL backend, with everything of ours inside the schema rowq.

What differs from yoyo's own, and why:
- the bookkeeping tables are rowq.migration and rowq.migration_log: an application that uses yoyo
  itself has tables of yoyo's names in its own schema;
- a migration and its bookkeeping are one transaction on one connection: it is there or it is not;
- a lock on that table, which only its owner can take and no crash leaves behind;
- nothing is created to find out what the server can do.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    DependentObjectsStillExist,
    DuplicateSchema,
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidSchemaName,
    LockNotAvailable,
    UndefinedTable,
    UniqueViolation,
)
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend

from rowq.engines import engine_for_url
from rowq.migrate.errors import (
    MigrationError,
    MissingPrivilege,
    SchemaInUse,
)
from rowq.migrate.frozen import GRANTS
from rowq.migrate.release import Numbered, Release
from rowq.migrate.shared import log_row, refusals, require_no_messages, tables_in_use
from rowq.postgres.statements import BEFORE, numbered_refusal, version_text
from rowq.postgres.status import losses

_T = TypeVar("_T")

# A migration overtakes another only where it has made or removed the whole installation.
_TRIES = 10
_OVERTAKEN = (
    DuplicateSchema,
    DuplicateTable,
    InvalidSchemaName,
    UndefinedTable,
    UniqueViolation,
)


class _OvertakenError(Exception):
    """Another migration has made or removed the tables of the bookkeeping meanwhile."""


class Backend(PostgresqlPsycopgBackend):  # type: ignore[misc]
    """Installs and removes the migrations of a release, one transaction for each.

    Args:
        url: the database's URL.
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

    def connect(self, url: str) -> Any:
        """Connect in autocommit, as yoyo expects; raises CannotConnect."""
        connection = engine_for_url(url).connect(url)
        connection.add_notice_handler(self._keep_notice)
        return connection

    def init_database(self) -> None:
        """Do nothing: yoyo would make its lock table and try out DDL here."""

    def ensure_internal_schema_updated(self) -> None:
        """Do nothing: bookkeeping.sql makes the tables."""

    def rollback(self) -> None:
        """Roll back, unless the connection is gone: then the server does it."""
        if self.connection.closed:
            self._in_transaction = False
        else:
            super().rollback()

    @contextmanager
    def lock(self, timeout: float = 0) -> Iterator[None]:  # noqa: ARG002 - preflight has it
        """Hold migrations to one at a time until the transaction ends; refuse what would fail."""
        for name in BEFORE:
            self._run_alone(name)
        yield

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:
        """Return the log's row."""
        return log_row(
            migration, operation, self.connection.execute("select session_user").fetchone()[0]
        )

    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations; none where there is no bookkeeping."""
        if self.connection.execute("select to_regclass('rowq.migration')").fetchone()[0] is None:
            return []
        rows = self.connection.execute("select migration_id from rowq.migration").fetchall()
        return [str(row[0]) for row in rows]

    def step_up(self, target: int) -> int | None:
        """Install the next migration and return its number.

        When `target` is reached already: see to roles and rights once more, and return None.
        """
        return self._until_alone(lambda: self._step_up(target))

    def _step_up(self, target: int) -> int | None:
        with refusals(psycopg.Error, _refusal), self.transaction(), self.lock():
            self._run_alone("bookkeeping.sql")
            self.installed = self.release.installed(self.installed_ids())
            if self.installed >= target:
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
        return self._until_alone(lambda: self._step_down(target, force=force))

    def _step_down(self, target: int | None, *, force: bool) -> tuple[int | None, int | None]:
        with refusals(psycopg.Error, _refusal), self.transaction(), self.lock():
            self.installed = installed = self.release.installed(self.installed_ids())
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

    def _run_alone(self, name: str) -> None:
        """Run a script that may meet another migration; raises _OvertakenError when it did."""
        try:
            self.connection.execute(self.release.text(name))
        except _OVERTAKEN as error:
            raise _OvertakenError from error

    @staticmethod
    def _until_alone(step: Callable[[], _T]) -> _T:
        """Take a step from its beginning as often as another migration has come before it."""
        for _ in range(_TRIES):
            with suppress(_OvertakenError):
                return step()
        raise tables_in_use()

    def _settle(self, numbered: Numbered) -> None:
        """Note what is installed now, and see to the rights of everything that is new."""
        self.connection.execute(version_text(numbered))
        self._grant(numbered.number)

    def _grant(self, number: int) -> None:
        if text := self.release.files(number).get(GRANTS):
            self.connection.execute(text)

    def _require_no_messages(self) -> None:
        self.connection.execute("lock table rowq.message in access exclusive mode")
        require_no_messages(losses(self.connection))

    def _keep_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        text = notice.message_primary or ""
        if notice.severity_nonlocalized == "WARNING" and text not in self.notices:
            self.notices.append(text)


def _refusal(error: psycopg.Error) -> MigrationError | None:
    if refusal := numbered_refusal(error):
        return refusal
    text = error.diag.message_primary or str(error)
    if isinstance(error, InsufficientPrivilege):
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    if isinstance(error, LockNotAvailable | DeadlockDetected):
        return tables_in_use()
    # A feature is "not supported" where a view of somebody's uses a column that is to change.
    is_used = isinstance(error, FeatureNotSupported) and error.diag.message_detail
    if is_used or isinstance(error, DependentObjectsStillExist):
        return SchemaInUse(
            f"{SchemaInUse.number} schema_in_use: others depend on what was to change or to go:"
            f" {text}",
            error.diag.message_detail,
        )
    return None
