"""What the engines' backends of yoyo share."""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from rowq.migrate.errors import MessagesLeft, MigrationBusy, MigrationError
from rowq.migrate.losses import Losses

_Error = TypeVar("_Error", bound=Exception)


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


def log_row(migration: Any, operation: str, username: str) -> dict[str, Any]:
    """Return a row of the log; yoyo's own needs a passwd entry and asks the name service."""
    return {
        "id": str(uuid.uuid4()),
        "migration_id": migration.id,
        "migration_hash": migration.hash,
        "username": username,
        "hostname": socket.gethostname(),
        "created_at_utc": datetime.now(UTC).replace(tzinfo=None),
        "operation": operation,
    }


def require_no_messages(losses: Losses) -> None:
    """Refuse a rollback that would throw messages away."""
    if losses.unfinished or losses.archived:
        raise MessagesLeft(
            f"{MessagesLeft.number} messages_left: this rollback would throw away {losses}",
            "Finish, cancel or purge them first, purge_archive those that are kept, or use force.",
        )


def tables_in_use(besides: str = "") -> MigrationBusy:
    """Return the refusal of a migration that waited for locks too long."""
    return MigrationBusy(
        f"{MigrationBusy.number} migration_busy: tables are in use{besides}",
        "Try again; rowq health names long transactions.",
    )
