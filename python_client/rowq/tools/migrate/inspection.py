"""What status, rollback and migrate ask of a database; it changes nothing."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

COUNTED = 100_000
"""No table is counted any further; the queries of each engine's module `status` say so, too."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What there is to lose.

    Attributes:
        queues: queues, with their settings.
        unfinished: messages that are ready, delayed, leased or dead.
        archived: finished messages that are kept.
    """

    queues: int = 0
    unfinished: int = 0
    archived: int = 0

    def __str__(self) -> str:
        """Say it in words."""
        queues = f"{_counted(self.queues)} queue{'' if self.queues == 1 else 's'}"
        unfinished, archived = _counted(self.unfinished), _counted(self.archived)
        return f"{queues}, {unfinished} unfinished and {archived} archived messages"


def _counted(count: int) -> str:
    return f"{count:,} or more" if count >= COUNTED else f"{count:,}"


class BaseInspection(ABC):
    """What there is to see through one connection.

    Args:
        connection: a connection of the engine's driver, in autocommit.
    """

    ROLES: ClassVar[tuple[str, ...]]
    """The roles that callers have."""
    CREATE_ROLE: ClassVar[str]
    """How a DBA makes one of them; {role} stands for its name."""
    ROLES_ARE_SHARED: ClassVar[str] = ""
    """Why a role may still be in use after rowq is removed from this database."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def begin(self) -> None:  # noqa: B027 - most engines need nothing
        """Let the session change nothing, and run nothing of others', until it ends."""

    @abstractmethod
    def server(self) -> str:
        """Return the server's name and version."""

    @abstractmethod
    def owner(self) -> str | None:
        """Return who owns what is installed, None where nothing is.

        Whatever else is asked comes after this: it refuses where looking could run what is not
        rowq's.

        Raises:
            ForeignSchema: what is there was not made by rowq, or not all of it.
            MissingPrivilege: this account may not see what is installed, or should not.
        """

    @abstractmethod
    def installed_ids(self) -> list[str]:
        """Return the ids of the installed migrations; none where there is no bookkeeping."""

    @abstractmethod
    def roles(self) -> dict[str, bool]:
        """Return for each of rowq's roles whether the server has it."""

    @abstractmethod
    def routines(self) -> dict[str, str]:
        """Return name and text of every installed routine; empty for a text that is hidden."""

    @abstractmethod
    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and text of every routine in these files, as `routines` shows them."""

    @abstractmethod
    def losses(self) -> Losses:
        """Return what is lost when the tables are."""

    def orphans(self) -> dict[str, str]:
        """Return the routines whose account is gone, and that; most engines know no such thing."""
        return {}

    def rights_of_others(self) -> tuple[str, ...]:
        """Say who has rights that rowq has not given; not every engine is asked."""
        return ()

    def missing_roles(self, roles: Mapping[str, bool]) -> tuple[str, ...]:
        """Say what to do about the roles that the server does not have."""
        return tuple(
            f'role {role} is missing: a DBA can run "{self.CREATE_ROLE.format(role=role)}",'
            " then migrate again"
            for role, is_present in roles.items()
            if not is_present
        )

    def roles_that_stay(self, roles: Mapping[str, bool]) -> tuple[str, ...]:
        """Return the statements that remove the roles, after rowq is removed."""
        there = [role for role, is_present in roles.items() if is_present]
        if not there:
            return ()
        # The owner comes last, as the other roles may have got their rights from it.
        there.sort(key="rowq_owner".__eq__)
        statements = " ".join(f"drop role {role};" for role in there)
        return (f"roles are left in place{self.ROLES_ARE_SHARED}; a DBA can run: {statements}",)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]
