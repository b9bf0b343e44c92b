"""What the engines' backends of yoyo share, and their scripts."""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, TypeVar

from rowq.migrate.errors import MessagesLeft, MigrationBusy, MigrationError
from rowq.migrate.losses import Losses
from rowq.migrate.release import Numbered

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


def recorded(numbered: Numbered) -> list[str]:
    """Return what a migration's steps send to the server."""
    recorder = _Recorder()
    numbered.migration.process_steps(recorder, "apply")
    return recorder.sent


class _Recorder:
    """Stands where yoyo's backend and its connection would, and keeps what is sent."""

    DatabaseError: type[Exception] = Exception
    has_transactional_ddl = True

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.connection = self

    def transaction(self) -> Any:
        """Open nothing: the script is one transaction itself."""
        return nullcontext()

    def execute(self, text: str) -> None:
        """Keep one text."""
        self.sent.append(text)
