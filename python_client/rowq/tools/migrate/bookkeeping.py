"""Notes in a database which migrations are installed there."""

import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from rowq.tools.migrate.release import Numbered

_LOG = """
insert into {log} (
    id, migration_hash, migration_id, operation, username, hostname, created_at_utc
)
values ({}, {}, {}, {}, {user}, {}, {now})
"""
_MARK = """
insert into {migration} (migration_hash, migration_id, applied_at_utc)
values ({}, {}, {now})
"""
_UNMARK = "delete from {migration} where migration_hash = {}"
_FROM_SCRIPT = """
insert into {log} (
    id, migration_hash, migration_id, operation, username, hostname, created_at_utc
)
values ({new_id}, '{hash}', '{id}', 'rollback', {user}, 'script', {now})
"""
_UNMARK_FROM_SCRIPT = "delete from {migration} where migration_hash = '{hash}'"


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The words in which an engine notes what is installed.

    Attributes:
        migration: the table of installed migrations.
        log: the table of what was done.
        mark: a parameter in the driver's style; {} stands for its number.
        user: an expression for who is connected.
        now: an expression for the time in UTC.
        new_id: an expression for a text that nothing else has, at most 36 characters long.
        version: the statement that notes {number} and {version} in the table meta.
    """

    migration: str
    log: str
    mark: str
    user: str
    now: str
    new_id: str
    version: str

    def version_text(self, numbered: Numbered) -> str:
        """Return the statement that notes which migration is installed, of which rowq."""
        return self.version.format(number=numbered.number, version=numbered.rowq_version)

    def notes(self, numbered: Numbered, operation: str) -> Iterator[tuple[str, list[str]]]:
        """Yield statements and their values that note what was done with a migration.

        Args:
            numbered: the migration.
            operation: apply, or rollback: then it is installed no more.
        """
        digest = numbered.migration.hash
        host = socket.gethostname()
        yield self._statement(_LOG, str(uuid.uuid4()), digest, numbered.id, operation, host)
        if operation == "apply":
            yield self._statement(_MARK, digest, numbered.id)
        else:
            yield self._statement(_UNMARK, digest)

    def forgotten(self, numbered: Numbered) -> tuple[str, ...]:
        """Return the statements by which a script notes that a migration is installed no more."""
        words = {
            "migration": self.migration,
            "log": self.log,
            "user": self.user,
            "now": self.now,
            "new_id": self.new_id,
            "hash": numbered.migration.hash,
            "id": numbered.id,
        }
        return tuple(text.format(**words) for text in (_FROM_SCRIPT, _UNMARK_FROM_SCRIPT))

    def _statement(self, template: str, *values: str) -> tuple[str, list[str]]:
        marks = [self.mark.format(number) for number, _ in enumerate(values, start=1)]
        names = {"migration": self.migration, "log": self.log, "user": self.user, "now": self.now}
        return template.format(*marks, **names), list(values)
