"""Why an install, upgrade or rollback was refused. A refusal has changed nothing.

Exception: on MariaDB and MySQL, DDL commits. If a privilege turns out to be missing or a table is
in use in the middle, a part is done, and the next run continues.

RowqError
└── MigrationError
    ├── ServerTooOld        RQ801   the server is older than rowq supports, or lacks InnoDB
    ├── ForeignSchema       RQ802   the schema rowq was not created by rowq
    ├── MissingPrivilege    RQ803   `remedy` is the statement a DBA must run
    ├── SchemaNewer         RQ804   installed by a newer rowq
    ├── MessagesLeft        RQ805   a rollback would delete messages
    ├── MigrationBusy       RQ806   lock timeout; retry
    ├── UnknownMigration    RQ807   the migration does not exist
    ├── SchemaInUse         RQ808   foreign objects are in the schema, or depend on it
    └── RoutedDatabase      RQ809   a node of a cluster; all nodes must be migrated together
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

from rowq.errors import RowqError

# ruff: noqa: N818 - errors are named by what happened

_Error = TypeVar("_Error", bound=Exception)


class MigrationError(RowqError):
    """Base of all refusals.

    Attributes:
        number: the error's number, such as RQ802; PostgreSQL raises it as SQLSTATE.
        remedy: a statement or command that helps, or None.
    """

    number: ClassVar[str]

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message if remedy is None else f"{message}\n{remedy}")
        self.remedy = remedy


class ServerTooOld(MigrationError):
    """The server is older than rowq supports, or lacks a required feature."""

    number = "RQ801"


class ForeignSchema(MigrationError):
    """The schema rowq was not created by rowq; it was not changed."""

    number = "RQ802"


class MissingPrivilege(MigrationError):
    """The account lacks a privilege; `remedy` is the statement a DBA must run."""

    number = "RQ803"


class SchemaNewer(MigrationError):
    """A newer rowq installed or upgraded the database."""

    number = "RQ804"


class MessagesLeft(MigrationError):
    """The rollback would delete unfinished or archived messages."""

    number = "RQ805"


class MigrationBusy(MigrationError):
    """Another migration or a long transaction held locks for too long; retry."""

    number = "RQ806"
    retryable = True


class UnknownMigration(MigrationError):
    """The migration does not exist."""

    number = "RQ807"


class SchemaInUse(MigrationError):
    """Foreign objects are in the schema or depend on it; a rollback does not drop them."""

    number = "RQ808"


class RoutedDatabase(MigrationError):
    """The database is a node of a cluster; `remedy` is the command to use."""

    number = "RQ809"


BY_NUMBER: dict[str, type[MigrationError]] = {
    refusal.number: refusal for refusal in MigrationError.__subclasses__()
}


@contextmanager
def refusals(
    kind: type[_Error], refusal_of: Callable[[_Error], MigrationError | None]
) -> Iterator[None]:
    """Turn a driver's errors into refusals, if they mean one."""
    try:
        yield
    except kind as error:
        if refusal := refusal_of(error):
            raise refusal from error
        raise


def tables_in_use(besides: str = "") -> MigrationBusy:
    """Return the refusal of a migration after a lock timeout."""
    return MigrationBusy(
        f"{MigrationBusy.number} migration_busy: tables are in use{besides}",
        "Retry; rowq health lists long transactions.",
    )
