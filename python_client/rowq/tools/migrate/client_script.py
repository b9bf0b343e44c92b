"""A migration as a script for the engine's own client, or in the plain form for a driver."""

import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from rowq.tools.migrate.frozen import GRANTS, Section, joined
from rowq.tools.migrate.release import Numbered, Release, recorded

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
    """An engine's SQL that records installed migrations.

    Attributes:
        migration: the table of installed migrations.
        log: the table of operations.
        mark: a parameter in the driver's style, with {} for its number.
        user: an expression for the connected account.
        now: an expression for the time in UTC.
        new_id: an expression for a unique text of at most 36 characters.
        version: the statement that records {number} and {version} in the table meta.
    """

    migration: str
    log: str
    mark: str
    user: str
    now: str
    new_id: str
    version: str

    def version_text(self, numbered: Numbered) -> str:
        """Return the statement that records the installed migration and version."""
        return self.version.format(number=numbered.number, version=numbered.rowq_version)

    def records(self, numbered: Numbered, operation: str) -> Iterator[tuple[str, list[str]]]:
        """Yield statements with values that record an operation, apply or rollback."""
        digest = numbered.migration.hash
        host = socket.gethostname()
        yield self._statement(_LOG, str(uuid.uuid4()), digest, numbered.id, operation, host)
        if operation == "apply":
            yield self._statement(_MARK, digest, numbered.id)
        else:
            yield self._statement(_UNMARK, digest)

    def removals(self, numbered: Numbered) -> tuple[str, ...]:
        """Return the statements by which a script records the rollback of a migration."""
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
    """How an engine's client runs what migrate does."""

    BOOKKEEPING: ClassVar[Bookkeeping]
    HEAD: ClassVar[str]
    """The start of the script, with {heading} for its purpose."""
    REQUIRE: ClassVar[str]
    """Refuses a database without the preceding migration {needed}."""
    REFUSE_NEWER: ClassVar[str]
    """Refuses a database that has a migration other than {known}."""
    REFUSE_OLDER: ClassVar[str]
    """Refuses a database that has migrations, but not the {newest}."""
    REMEMBER: ClassVar[str]
    """Records that the migration of {hash} and {id} is installed."""
    END: ClassVar[Section]
    """The end of the script."""
    LITERAL: ClassVar[str] = "'{}'"
    """A text literal in the client."""
    PLAIN_HEAD: ClassVar[str]
    """The start of the plain form, with {heading} for its purpose."""
    SEPARATOR: ClassVar[str] = "-- [end of statement]\n"
    """The line between two statements of the plain form."""
    OPEN: ClassVar[tuple[Section, ...]] = ()
    """Sets the session of the plain form, which is shared with other statements."""
    CLOSE: ClassVar[tuple[Section, ...]] = ()
    """Restores that session."""
    FOR_CLIENT: ClassVar[tuple[str, ...]] = ()
    """Names of sections for the client only."""
    FOR_OWNER: ClassVar[tuple[str, ...]] = ()
    """Names of sections about the account that the routines run as."""
    REFUSE_MESSAGES: ClassVar[str]
    """Refuses to delete messages."""
    END_OF_STATEMENT: ClassVar[str] = ";\n"

    def script(self, release: Release, numbered: Numbered) -> str:
        """Return the script that installs a migration if the preceding ones are installed."""
        return joined(self.HEAD.format(heading=numbered.heading), self._parts(release, numbered))

    @abstractmethod
    def before(self, release: Release) -> Iterable[Section]:
        """Return sections that lock, check preconditions and create the bookkeeping tables."""

    @abstractmethod
    def before_undo(self, release: Release) -> Iterable[Section]:
        """Return sections that lock and check preconditions before a rollback."""

    def removable(self, release: Release) -> Iterable[Section]:  # noqa: ARG002 - see MariaDB's
        """Return sections that refuse to remove foreign objects, if remove.sql does not."""
        return ()

    @abstractmethod
    def plain_statements(self, text: str) -> Iterable[str]:
        """Return the statements of a section for a driver, each with its line end."""

    @abstractmethod
    def flyway_form(self, text: str) -> str:
        """Return a section in the form that Flyway splits into the same statements."""

    def prepared(self, release: Release) -> Iterable[Section]:  # noqa: ARG002 - see MariaDB's
        """Return sections that a migration needs first; none on most engines."""
        return ()

    @abstractmethod
    def client_form(self, text: str) -> str:
        """Return a file or statement in the script's form, so that another can follow."""

    def source_form(self, text: str) -> str:
        """Return a file's original text from its form in a script."""
        return text

    def without_owner(self, release: Release, script: str) -> str:  # noqa: ARG002
        """Return a script that does not create the account rowq_owner (MariaDB and MySQL)."""
        return script

    def assembled(self, sources: Path) -> dict[str, str]:  # noqa: ARG002 - see Oracle's
        """Return path and text of the generated files that install.sql names."""
        return {}

    def plain(self, heading: str, parts: Iterable[Section]) -> str:
        """Return a script for a driver: SQL statements only, between separators."""
        statements: list[str] = []
        for part in self._shared(parts):
            mark = part.mark
            for statement in self.plain_statements(part.text):
                statements.append(f"{mark}{statement}")
                mark = ""
        return self.PLAIN_HEAD.format(heading=heading) + self.SEPARATOR.join(statements)

    def flyway(self, heading: str, parts: Iterable[Section]) -> str:
        """Return the same for Flyway, which splits a script into statements itself."""
        texts = [f"{part.mark}{self.flyway_form(part.text)}" for part in self._shared(parts)]
        return f"-- {heading}.\n" + "".join(texts)

    def undone(self, release: Release, numbered: Numbered) -> Iterator[Section]:
        """Return the sections of a script that rolls back a migration."""
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
            yield from self._record_removal(release, numbered)
        yield self.END

    def checks_of_sources(self, release: Release) -> str:
        """Return the checks of install.sql: nothing is installed, or exactly its migrations."""
        ids = release.ids(release.newest)
        older = [self.REFUSE_OLDER.format(newest=ids[-1])] if len(ids) > 1 else []
        return self._joined([self._newest(ids), *older])

    def record_of_sources(self, release: Release) -> str:
        """Return the statements by which install.sql records all migrations."""
        return self._record(release.migrations)

    def _record(self, done: Sequence[Numbered]) -> str:
        remember = "".join(
            self.REMEMBER.format(hash=numbered.migration.hash, id=numbered.id) for numbered in done
        )
        version = self.BOOKKEEPING.version_text(done[-1])
        return self.client_form(f"{remember}{version}".lstrip())

    def _record_removal(self, release: Release, numbered: Numbered) -> Iterator[Section]:
        version = self.BOOKKEEPING.version_text(release.get(numbered.number - 1)).lstrip()
        removal = "".join(
            f"{statement.strip()}{self.END_OF_STATEMENT}"
            for statement in self.BOOKKEEPING.removals(numbered)
        )
        yield Section("after", "noted", self.client_form(f"{version}{removal}"))
        yield Section("file", GRANTS, release.files(numbered.number - 1)[GRANTS])

    def _shared(self, parts: Iterable[Section]) -> Iterator[Section]:
        """Yield the sections of a script that shares its session."""
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
        yield Section("after", "noted", self._record([numbered]))
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
