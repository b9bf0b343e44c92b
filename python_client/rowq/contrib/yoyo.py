"""A backend of yoyo that migrates as `rowq migrate` does, and reads rowq's own record.

    yoyo apply --database rowq+sqlserver://user:password@host/database migrations/sqlserver

It is for engines on which yoyo's backends do not work, SQL Server and Oracle, and for accounts that
may not create yoyo's tables. The URL is rowq's, after `rowq+`.
"""

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn
from urllib.parse import quote, urlencode

from yoyo.backends import DatabaseBackend
from yoyo.connections import DatabaseURI
from yoyo.migrations import Migration, get_migration_hash

from rowq.engines import engine_for_url
from rowq.tools.migrate.errors import MigrationError, SchemaNewer, UnknownMigration
from rowq.tools.migrate.release import release_for
from rowq.tools.migrate.runner import Migrated, installed_ids, migrate, plan_rollback, rollback

_logger = logging.getLogger("yoyo.migrations")


class Backend(DatabaseBackend):  # type: ignore[misc]
    """Runs rowq's migrations only, and has no tables of its own."""

    def __init__(self, dburi: DatabaseURI, migration_table: str) -> None:  # noqa: ARG002 - yoyo's
        self.uri = dburi
        self._url = url_of(dburi)
        self._numbers = {
            numbered.id: numbered.number
            for numbered in release_for(engine_for_url(self._url).name).migrations
        }

    def __exit__(self, *_exception: object) -> None:
        """Close nothing: each call has its own connection."""

    def init_database(self) -> None:
        """Create nothing."""

    def ensure_internal_schema_updated(self) -> None:
        """Change nothing."""

    def lock(self, timeout: float = 10) -> AbstractContextManager[None]:  # noqa: ARG002
        """Take no lock: each migration takes rowq's."""
        return nullcontext()

    def break_lock(self) -> None:
        """Break nothing: rowq's lock ends with its session."""

    def get_applied_migration_hashes(self) -> list[str]:
        """Return the hashes of the migrations that rowq has recorded."""
        return [get_migration_hash(known) for known in installed_ids(self._url)]

    def apply_one(self, migration: Migration, force: bool = False, mark: bool = True) -> None:  # noqa: ARG002
        """Install a migration of rowq, and earlier ones that are missing."""
        self._report(migrate(self._url, to=self._number(migration)))

    def rollback_one(self, migration: Migration, force: bool = False) -> None:  # noqa: ARG002
        """Roll back the newest migration; refused if that would delete messages."""
        number = self._number(migration)
        newest, *before = plan_rollback(self._url, to=number - 1).removed or [number]
        if before:
            raise SchemaNewer(
                f"{SchemaNewer.number} schema_newer: migration {newest} must be rolled back before"
                f" {number}"
            )
        self._report(rollback(self._url, to=number - 1))

    def mark_migrations(self, migrations: Iterable[Migration]) -> NoReturn:  # noqa: ARG002
        """Refuse: the record is rowq's."""
        raise MigrationError("rowq records what is installed; yoyo cannot mark or unmark it")

    unmark_migrations = mark_migrations

    def _number(self, migration: Migration) -> int:
        """Return a migration's number; raise UnknownMigration if it is not rowq's."""
        try:
            return self._numbers[migration.id]
        except KeyError:
            raise UnknownMigration(
                f"{UnknownMigration.number} unknown_migration: rowq+ runs rowq's migrations only,"
                f" got {migration.id}"
            ) from None

    def _report(self, migrated: Migrated) -> None:
        for notice in migrated.notices:
            _logger.warning(notice)


def url_of(uri: DatabaseURI) -> str:
    """Return rowq's URL from the parts into which yoyo splits it."""
    host = f"[{uri.hostname}]" if ":" in (uri.hostname or "") else uri.hostname
    query = urlencode(uri.args, quote_via=quote)
    return (
        f"{uri.scheme.removeprefix('rowq+')}://{uri._replace(hostname=host).netloc}"
        f"/{uri.database or ''}{f'?{query}' if query else ''}"
    )
