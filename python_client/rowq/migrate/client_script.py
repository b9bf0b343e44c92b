"""A migration as a script for an engine's own client: its parts, which are the same for all."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rowq.migrate.bookkeeping import Bookkeeping
from rowq.migrate.frozen import GRANTS, Part, joined
from rowq.migrate.release import Numbered, Release
from rowq.migrate.steps import recorded


class BaseScript(ABC):
    """How an engine's client is told what migrate does."""

    BOOKKEEPING: ClassVar[Bookkeeping]
    HEAD: ClassVar[str]
    """What comes first, with {heading} for what the script does."""
    REQUIRE: ClassVar[str]
    """Refuses a database without the migration {needed}, which comes before."""
    REFUSE_NEWER: ClassVar[str]
    """Refuses a database that has a migration beside those in {known}."""
    REMEMBER: ClassVar[str]
    """Notes that the migration of {hash} and {id} is installed."""
    END: ClassVar[Part]
    """What comes last."""
    LITERAL: ClassVar[str] = "'{}'"
    """How the client reads a text."""

    def script(self, release: Release, numbered: Numbered) -> str:
        """Return the script that installs a migration where the ones before it are."""
        return joined(self.HEAD.format(heading=numbered.heading), self._parts(release, numbered))

    @abstractmethod
    def before(self, release: Release) -> Iterable[Part]:
        """Return what lets one migration in at a time, refuses what would fail, and makes tables.

        These are the tables of the bookkeeping.
        """

    def prepared(self, release: Release) -> Iterable[Part]:  # noqa: ARG002 - see MariaDB's
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

    def _parts(self, release: Release, numbered: Numbered) -> Iterator[Part]:
        yield from self.before(release)
        yield Part("before", "installed", self._checks(release.ids(numbered.number)))
        yield from self.prepared(release)
        for part in recorded(numbered.migration):
            yield replace(part, text=self.client_form(part.text))
        remember = self.REMEMBER.format(hash=numbered.migration.hash, id=numbered.id)
        version = self.BOOKKEEPING.version_text(numbered)
        yield Part("after", "noted", self.client_form(f"{remember}{version}".lstrip()))
        yield Part("file", GRANTS, release.files(numbered.number)[GRANTS])
        yield self.END

    def _checks(self, ids: list[str]) -> str:
        *before, _ = ids
        known = ", ".join(self.LITERAL.format(known) for known in ids)
        checks = [self.REQUIRE.format(needed=before[-1])] if before else []
        checks.append(self.REFUSE_NEWER.format(known=known))
        return self.client_form("\n".join(check.lstrip("\n") for check in checks))
