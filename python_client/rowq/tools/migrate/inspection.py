"""Read-only queries of status, rollback and migrate."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

COUNTED = 100_000
"""The maximum count of a table; the queries of each engine's module `status` contain it."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Numbers of objects that a rollback would delete; unfinished messages include dead ones."""

    queues: int = 0
    unfinished: int = 0
    archived: int = 0

    def __str__(self) -> str:
        """Return the numbers in words."""
        queues = f"{_counted(self.queues)} queue{'' if self.queues == 1 else 's'}"
        unfinished, archived = _counted(self.unfinished), _counted(self.archived)
        return f"{queues}, {unfinished} unfinished and {archived} archived messages"


def _counted(count: int) -> str:
    return f"{count:,} or more" if count >= COUNTED else f"{count:,}"


class BaseInspection(ABC):
    """Queries on one connection of the engine's driver, in autocommit."""

    ROLES: ClassVar[tuple[str, ...]]
    """The roles of callers."""
    CREATE_ROLE: ClassVar[str]
    """The statement that creates a {role}."""
    ROLES_ARE_SHARED: ClassVar[str] = ""
    """Why a role may still be in use after rowq is removed."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def begin(self) -> None:  # noqa: B027 - most engines need nothing
        """Prevent the session from changing anything or running foreign code."""

    def ids(self) -> list[str]:
        """Return the ids of the installed migrations, after the checks of `owner`."""
        self.begin()
        return self.installed_ids() if self.owner() else []

    @abstractmethod
    def server(self) -> str:
        """Return the server's name and version."""

    @abstractmethod
    def owner(self) -> str | None:
        """Return the owner of the installation; None if there is none.

        Must be called first: it refuses if the other queries could run foreign code.

        Raises:
            ForeignSchema: not everything was created by rowq.
            MissingPrivilege: this account cannot read what is installed, or must not.
        """

    @abstractmethod
    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations; none without bookkeeping."""

    @abstractmethod
    def roles(self) -> dict[str, bool]:
        """Return which of rowq's roles exist."""

    @abstractmethod
    def routines(self) -> dict[str, str]:
        """Return name and text of every installed routine; a hidden text is empty."""

    @abstractmethod
    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and text of every routine in these files, in the form of `routines`."""

    @abstractmethod
    def losses(self) -> Losses:
        """Return what dropping the tables would delete."""

    def orphans(self) -> dict[str, str]:
        """Return routines whose account no longer exists, with the account; MySQL only."""
        return {}

    def rights_of_others(self) -> tuple[str, ...]:
        """Return notices about privileges not granted by rowq; none on some engines."""
        return ()

    def missing_roles(self, roles: Mapping[str, bool]) -> tuple[str, ...]:
        """Return notices with the statements that create missing roles."""
        return tuple(
            f'role {role} is missing: a DBA can run "{self.CREATE_ROLE.format(role=role)}",'
            " then migrate again"
            for role, is_present in roles.items()
            if not is_present
        )

    def roles_that_stay(self, roles: Mapping[str, bool]) -> tuple[str, ...]:
        """Return a notice with the statements that drop the roles after rowq is removed."""
        present = [role for role, is_present in roles.items() if is_present]
        if not present:
            return ()
        # Drop the owner last: the other roles may depend on its grants.
        present.sort(key="rowq_owner".__eq__)
        statements = " ".join(f"drop role {role};" for role in present)
        return (f"roles are left in place{self.ROLES_ARE_SHARED}; a DBA can run: {statements}",)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
