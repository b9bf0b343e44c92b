"""Install, upgrade and remove rowq in a database, and inspect what is installed."""

try:
    import yoyo as _yoyo  # noqa: F401 - imported here, so that one error names the package
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "yoyo-migrations is missing; run pip install 'rowq[tools]'", name="yoyo"
    ) from error

from rowq.tools.migrate.errors import (
    ForeignSchema,
    MessagesLeft,
    MigrationBusy,
    MigrationError,
    MissingPrivilege,
    RoutedDatabase,
    SchemaInUse,
    SchemaNewer,
    ServerTooOld,
    UnknownMigration,
)
from rowq.tools.migrate.for_tools import (
    FileInTheWayError,
    Steps,
    alembic_files,
    flyway_files,
    plain_script,
    plain_steps,
    write_files,
)
from rowq.tools.migrate.inspection import Losses
from rowq.tools.migrate.runner import Migrated, Plan, migrate, plan_rollback, rollback, script
from rowq.tools.migrate.status import Drift, Status, status

__all__ = [
    "Drift",
    "FileInTheWayError",
    "ForeignSchema",
    "Losses",
    "MessagesLeft",
    "Migrated",
    "MigrationBusy",
    "MigrationError",
    "MissingPrivilege",
    "Plan",
    "RoutedDatabase",
    "SchemaInUse",
    "SchemaNewer",
    "ServerTooOld",
    "Status",
    "Steps",
    "UnknownMigration",
    "alembic_files",
    "flyway_files",
    "migrate",
    "plain_script",
    "plain_steps",
    "plan_rollback",
    "rollback",
    "script",
    "status",
    "write_files",
]
