"""Migrations on PostgreSQL: each is one transaction with its bookkeeping, there or not there.

A lock on a table of the bookkeeping lets one in at a time: only its owner can take it, and no crash
leaves it behind.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.errors import (
    DuplicateSchema,
    DuplicateTable,
    InvalidSchemaName,
    UndefinedTable,
    UniqueViolation,
)

from rowq.tools.engines.postgres.script import BEFORE, BOOKKEEPING
from rowq.tools.engines.postgres.status import Inspection, refusal
from rowq.tools.migrate.errors import tables_in_use
from rowq.tools.migrate.inspection import Losses
from rowq.tools.migrate.installer import BaseInstaller

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


class Installer(BaseInstaller):
    """Installs and removes the migrations of a release, one transaction for each."""

    BOOKKEEPING = BOOKKEEPING
    INSPECTION = Inspection
    REFUSAL = staticmethod(refusal)
    DatabaseError = psycopg.Error

    def use(self, driver_connection: Any) -> None:
        """Set `connection` and `look`; warnings of the server become notices."""
        driver_connection.add_notice_handler(self._keep_notice)
        self.connection = driver_connection
        self.look = Inspection(driver_connection)

    def step_up(self, target: int) -> int | None:
        """Install the next migration, as on every engine."""
        step = super().step_up
        return self._until_alone(lambda: step(target))

    def step_down(self, target: int | None, *, force: bool) -> tuple[int | None, int | None]:
        """Remove the newest migration, as on every engine."""
        step = super().step_down
        return self._until_alone(lambda: step(target, force=force))

    @contextmanager
    def alone(self, *, installing: bool) -> Iterator[None]:
        """Hold migrations to one at a time until the transaction ends; refuse what would fail."""
        with self.engine.transaction(self.connection):
            for name in BEFORE:
                self._run_alone(name)
            if installing:
                self._run_alone("bookkeeping.sql")
            yield

    def losses(self) -> Losses:
        """Return what is lost when the tables are; until then nobody enqueues."""
        self.connection.execute("lock table rowq.message in access exclusive mode")
        return super().losses()

    def _run_alone(self, name: str) -> None:
        """Run a script that may meet another migration; raises _OvertakenError when it did."""
        try:
            self.run(name)
        except _OVERTAKEN as error:
            raise _OvertakenError from error

    @staticmethod
    def _until_alone(step: Callable[[], _T]) -> _T:
        """Take a step from its beginning as often as another migration has come before it."""
        for _ in range(_TRIES):
            with suppress(_OvertakenError):
                return step()
        raise tables_in_use()

    def _keep_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.say([notice.message_primary or ""])
