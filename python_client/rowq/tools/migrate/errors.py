"""Why an install, an upgrade or a rollback was refused. A refusal has changed nothing.

But for one that comes late where DDL commits by itself (MariaDB, MySQL): a right that is missing
after all, or a table in use. Then a part is there, and running it again goes on.

RowqError
└── MigrationError
    ├── ServerTooOld        RQ801   the server is older than rowq supports, or lacks InnoDB
    ├── ForeignSchema       RQ802   a schema named rowq exists and is not ours
    ├── MissingPrivilege    RQ803   `remedy` is the statement a DBA must run
    ├── SchemaNewer         RQ804   installed by a newer rowq than this one
    ├── MessagesLeft        RQ805   a rollback would throw messages away
    ├── MigrationBusy       RQ806   locks did not become free in time; simply try again
    ├── UnknownMigration    RQ807   there is no migration of this number to go to
    ├── SchemaInUse         RQ808   others have put objects into the schema, or depend on ours
    └── RoutedDatabase      RQ809   a node of a cluster is migrated with all others, or not at all
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
    """The server is older than rowq supports, or lacks a part that it needs."""

    number = "RQ801"


class ForeignSchema(MigrationError):
    """A schema named rowq exists and was not made by rowq; it is left alone."""

    number = "RQ802"


class MissingPrivilege(MigrationError):
    """The user may not do this; `remedy` is the statement a DBA must run."""

    number = "RQ803"


class SchemaNewer(MigrationError):
    """The database was installed or upgraded by a newer rowq than this one."""

    number = "RQ804"


class MessagesLeft(MigrationError):
    """Rolling back would throw messages away, unfinished or archived ones."""

    number = "RQ805"


class MigrationBusy(MigrationError):
    """Another migration or long transactions held locks for too long; try again."""

    number = "RQ806"
    retryable = True


class UnknownMigration(MigrationError):
    """There is no migration of this number to go to."""

    number = "RQ807"


class SchemaInUse(MigrationError):
    """Others' objects are in the schema or depend on ours; a rollback will not take them along."""

    number = "RQ808"


class RoutedDatabase(MigrationError):
    """Calls are carried between the nodes of a cluster, or cannot be; `remedy` says what to do."""

    number = "RQ809"


BY_NUMBER: dict[str, type[MigrationError]] = {
    refusal.number: refusal for refusal in MigrationError.__subclasses__()
}


@contextmanager
def refusals(
    kind: type[_Error], refusal_of: Callable[[_Error], MigrationError | None]
) -> Iterator[None]:
    """Turn a driver's errors that mean a refusal into refusals; others pass through untouched."""
    try:
        yield
    except kind as error:
        if refusal := refusal_of(error):
            raise refusal from error
        raise


def tables_in_use(besides: str = "") -> MigrationBusy:
    """Return the refusal of a migration that waited for locks too long."""
    return MigrationBusy(
        f"{MigrationBusy.number} migration_busy: tables are in use{besides}",
        "Try again; rowq health names long transactions.",
    )
