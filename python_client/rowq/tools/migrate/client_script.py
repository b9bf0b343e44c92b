"""A migration as a script: its parts, and how it is noted, which are the same for all engines.

The engine's own client runs it, or a driver or another tool in the plain form.
"""

import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from rowq.tools.migrate.frozen import GRANTS, Section, joined
from rowq.tools.migrate.release import Numbered, Release
from rowq.tools.migrate.steps import recorded

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


class BaseScript(ABC):
    """How an engine's client is told what migrate does."""

    BOOKKEEPING: ClassVar[Bookkeeping]
    HEAD: ClassVar[str]
    """What comes first, with {heading} for what the script does."""
    REQUIRE: ClassVar[str]
    """Refuses a database without the migration {needed}, which comes before."""
    REFUSE_NEWER: ClassVar[str]
    """Refuses a database that has a migration beside those in {known}."""
    REFUSE_OLDER: ClassVar[str]
    """Refuses a database that has migrations, and not the {newest}."""
    REMEMBER: ClassVar[str]
    """Notes that the migration of {hash} and {id} is installed."""
    END: ClassVar[Section]
    """What comes last."""
    LITERAL: ClassVar[str] = "'{}'"
    """How the client reads a text."""
    PLAIN_HEAD: ClassVar[str]
    """What comes first in the plain form, with {heading} for what the script does."""
    SEPARATOR: ClassVar[str] = "-- [end of statement]\n"
    """The line between two statements of the plain form."""
    OPEN: ClassVar[tuple[Section, ...]] = ()
    """What the plain form begins with: it shares its session with others."""
    CLOSE: ClassVar[tuple[Section, ...]] = ()
    """What sets the session back."""
    FOR_CLIENT: ClassVar[tuple[str, ...]] = ()
    """Names of the parts that are for the client alone."""
    FOR_OWNER: ClassVar[tuple[str, ...]] = ()
    """Names of the parts that see to the account that the routines run as."""
    REFUSE_MESSAGES: ClassVar[str]
    """Refuses to go on where messages would be thrown away."""
    END_OF_STATEMENT: ClassVar[str] = ";\n"

    def script(self, release: Release, numbered: Numbered) -> str:
        """Return the script that installs a migration where the ones before it are."""
        return joined(self.HEAD.format(heading=numbered.heading), self._parts(release, numbered))

    @abstractmethod
    def before(self, release: Release) -> Iterable[Section]:
        """Return what lets one migration in at a time, refuses what would fail, and makes tables.

        These are the tables of the bookkeeping.
        """

    @abstractmethod
    def before_undo(self, release: Release) -> Iterable[Section]:
        """Return what lets one rollback in at a time, and refuses what would fail."""

    def removable(self, release: Release) -> Iterable[Section]:  # noqa: ARG002 - see MariaDB's
        """Return what refuses to remove others' objects where remove.sql does not."""
        return ()

    @abstractmethod
    def plain_statements(self, text: str) -> Iterable[str]:
        """Return the statements of a part as a driver is given them, each with its line end."""

    @abstractmethod
    def flyway_form(self, text: str) -> str:
        """Return a part as Flyway cuts it into the same statements."""

    def prepared(self, release: Release) -> Iterable[Section]:  # noqa: ARG002 - see MariaDB's
        """Return what a migration needs beforehand; nothing on most engines."""
        return ()

    @abstractmethod
    def client_form(self, text: str) -> str:
        """Return a file or statement as it stands in the script: another may follow it."""

    def source_form(self, text: str) -> str:
        """Return a file as it was before it came into the script."""
        return text

    def without_owner(self, release: Release, script: str) -> str:  # noqa: ARG002
        """Return a script that makes no account of rowq's own; on most engines none does."""
        return script

    def assembled(self, sources: Path) -> dict[str, str]:  # noqa: ARG002 - see Oracle's
        """Return path and text of what install.sql names and is no file, from sql/<engine>."""
        return {}

    def plain(self, heading: str, parts: Iterable[Section]) -> str:
        """Return a script for a driver: no client commands, statements between separators.

        Args:
            heading: what it does.
            parts: those of a script for the client, or what `undone` returns.
        """
        statements: list[str] = []
        for part in self._shared(parts):
            mark = part.mark
            for statement in self.plain_statements(part.text):
                statements.append(f"{mark}{statement}")
                mark = ""
        return self.PLAIN_HEAD.format(heading=heading) + self.SEPARATOR.join(statements)

    def flyway(self, heading: str, parts: Iterable[Section]) -> str:
        """Return the same for Flyway, which cuts a script into statements by itself."""
        texts = [f"{part.mark}{self.flyway_form(part.text)}" for part in self._shared(parts)]
        return f"-- {heading}.\n" + "".join(texts)

    def undone(self, release: Release, numbered: Numbered) -> Iterator[Section]:
        """Return the parts of a script that takes a migration back, as rollback does."""
        yield from self.before_undo(release)
        checks = [
            self.REQUIRE.format(needed=numbered.id),
            self._newest(release.ids(numbered.number)),
        ]
        yield Section("before", "installed", self._joined(checks))
        if numbered.loses_messages:
            yield Section("before", "messages", self.client_form(self.REFUSE_MESSAGES.lstrip("\n")))
        if numbered.number == 1:
            yield from self.removable(release)
        for part in recorded(numbered.migration, "rollback"):
            yield replace(part, text=self.client_form(part.text))
        if numbered.number == 1:
            yield Section("after", "remove.sql", self.client_form(release.text("remove.sql")))
        else:
            yield from self._forgotten(release, numbered)
        yield self.END

    def checks_of_sources(self, release: Release) -> str:
        """Return what install.sql refuses: it installs all migrations at once, and upgrades none.

        So it runs where nothing is installed, or just what it installs.
        """
        ids = release.ids(release.newest)
        older = [self.REFUSE_OLDER.format(newest=ids[-1])] if len(ids) > 1 else []
        return self._joined([self._newest(ids), *older])

    def note_of_sources(self, release: Release) -> str:
        """Return how install.sql notes that all migrations are installed."""
        return self._noted(release.migrations)

    def _noted(self, done: Sequence[Numbered]) -> str:
        remember = "".join(
            self.REMEMBER.format(hash=numbered.migration.hash, id=numbered.id) for numbered in done
        )
        version = self.BOOKKEEPING.version_text(done[-1])
        return self.client_form(f"{remember}{version}".lstrip())

    def _forgotten(self, release: Release, numbered: Numbered) -> Iterator[Section]:
        version = self.BOOKKEEPING.version_text(release.get(numbered.number - 1)).lstrip()
        forget = "".join(
            f"{statement.strip()}{self.END_OF_STATEMENT}"
            for statement in self.BOOKKEEPING.forgotten(numbered)
        )
        yield Section("after", "noted", self.client_form(f"{version}{forget}"))
        yield Section("file", GRANTS, release.files(numbered.number - 1)[GRANTS])

    def _shared(self, parts: Iterable[Section]) -> Iterator[Section]:
        """Yield the parts of a script whose session is not its own."""
        yield from self.OPEN
        for part in parts:
            if part.name not in self.FOR_CLIENT:
                yield part
        yield from self.CLOSE

    def _parts(self, release: Release, numbered: Numbered) -> Iterator[Section]:
        yield from self.before(release)
        yield Section("before", "installed", self._checks(release.ids(numbered.number)))
        yield from self.prepared(release)
        for part in recorded(numbered.migration):
            yield replace(part, text=self.client_form(part.text))
        yield Section("after", "noted", self._noted([numbered]))
        yield Section("file", GRANTS, release.files(numbered.number)[GRANTS])
        yield self.END

    def _checks(self, ids: list[str]) -> str:
        *before, _ = ids
        checks = [self.REQUIRE.format(needed=before[-1])] if before else []
        return self._joined([*checks, self._newest(ids)])

    def _newest(self, ids: list[str]) -> str:
        known = ",\n        ".join(self.LITERAL.format(known) for known in ids)
        return self.REFUSE_NEWER.format(known=known)

    def _joined(self, checks: list[str]) -> str:
        return self.client_form("\n".join(check.lstrip("\n") for check in checks))
