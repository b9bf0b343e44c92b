"""Install, upgrade and remove rowq in a database, and look at what is installed."""

from rowq.migrate.errors import (
    ForeignSchema,
    MessagesUnfinished,
    MigrationBusy,
    MigrationError,
    MissingPrivilege,
    SchemaInUse,
    SchemaNewer,
    ServerTooOld,
    UnknownMigration,
)
from rowq.migrate.runner import Migrated, migrate, rollback, script
from rowq.migrate.status import Drift, Status, status

__all__ = [
    "Drift",
    "ForeignSchema",
    "MessagesUnfinished",
    "Migrated",
    "MigrationBusy",
    "MigrationError",
    "MissingPrivilege",
    "SchemaInUse",
    "SchemaNewer",
    "ServerTooOld",
    "Status",
    "UnknownMigration",
    "migrate",
    "rollback",
    "script",
    "status",
]
