"""Migrations on PostgreSQL: each is one transaction with its bookkeeping.

A lock on a bookkeeping table lets one in at a time: only its owner can take it, and a crash
releases it.
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

# A migration overtakes another only if it has created or removed the whole installation.
_TRIES = 10
_OVERTAKEN = (
    DuplicateSchema,
    DuplicateTable,
    InvalidSchemaName,
    UndefinedTable,
    UniqueViolation,
)


class _OvertakenError(Exception):
    """A concurrent migration has created or removed the bookkeeping tables."""


class Installer(BaseInstaller):
    """Installs and removes the migrations of a release, one transaction for each."""

    BOOKKEEPING = BOOKKEEPING
    INSPECTION = Inspection
    REFUSAL = staticmethod(refusal)
    DatabaseError = psycopg.Error

    def use(self, driver_connection: Any) -> None:
        """Set `connection` and `inspection`; warnings of the server become notices."""
        driver_connection.add_notice_handler(self._keep_notice)
        self.connection = driver_connection
        self.inspection = Inspection(driver_connection)

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
        """Allow one migration at a time, in a transaction, and check preconditions."""
        with self.engine.transaction(self.connection):
            for name in BEFORE:
                self._run_alone(name)
            if installing:
                self._run_alone("bookkeeping.sql")
            yield

    def losses(self) -> Losses:
        """Return what dropping the tables would delete, and block enqueue until then."""
        self.connection.execute("lock table rowq.message in access exclusive mode")
        return super().losses()

    def _run_alone(self, name: str) -> None:
        """Run a script; raise _OvertakenError if a concurrent migration came first."""
        try:
            self.run(name)
        except _OVERTAKEN as error:
            raise _OvertakenError from error

    @staticmethod
    def _until_alone(step: Callable[[], _T]) -> _T:
        """Repeat a step while concurrent migrations overtake it."""
        for _ in range(_TRIES):
            with suppress(_OvertakenError):
                return step()
        raise tables_in_use()

    def _keep_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.add_notices([notice.message_primary or ""])
