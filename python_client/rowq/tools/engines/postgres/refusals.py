"""What an error of the server means to whoever migrates or looks."""

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    LockNotAvailable,
)

from rowq.tools.migrate.errors import BY_NUMBER, MigrationError, MissingPrivilege, SchemaInUse
from rowq.tools.migrate.refusals import tables_in_use


def numbered_refusal(error: psycopg.Error) -> MigrationError | None:
    """Return the refusal that a script has raised by its number, None for any other error."""
    kind = BY_NUMBER.get(error.sqlstate or "")
    return kind(error.diag.message_primary or str(error), error.diag.message_hint) if kind else None


def refusal(error: psycopg.Error) -> MigrationError | None:
    """Return the refusal that an error of a migration is; None for any other error."""
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
