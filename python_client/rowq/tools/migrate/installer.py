"""Installs and removes migrations: the order of the steps, which is the same for every engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, ClassVar, Self

from rowq.engines import engine_for_url
from rowq.tools.migrate.client_script import Bookkeeping
from rowq.tools.migrate.comments import COMMENTS
from rowq.tools.migrate.errors import MessagesLeft, MigrationError, refusals
from rowq.tools.migrate.frozen import GRANTS
from rowq.tools.migrate.inspection import BaseInspection, Losses
from rowq.tools.migrate.release import Numbered, Release


class ScriptConnection(ABC):
    """A connection that runs whole scripts; all else is the driver's."""

    def __init__(self, driver_connection: Any) -> None:
        self.driver_connection = driver_connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver_connection, name)

    @abstractmethod
    def execute(self, text: str) -> Any:
        """Run a script, one statement after the other."""


class BaseInstaller(ABC):
    """Installs and removes the migrations of a release, a step at a time.

    An engine says how a migration is alone, what an error means and what it does beside; the order
    is here. yoyo's steps take an installer for a backend of yoyo's.

    Args:
        url: the database's URL.
        release: the migrations to work with.

    Attributes:
        installed: the newest installed number, as of the last step.
        notices: what was left out, and what to do about it; each once.
        connection: what runs whole scripts by its method `execute`.
        look: what is seen through that connection.
    """

    BOOKKEEPING: ClassVar[Bookkeeping]
    CONNECTION: ClassVar[type[ScriptConnection]]
    INSPECTION: ClassVar[type[BaseInspection]]
    REFUSAL: Callable[[Any], MigrationError | None]
    """Returns the refusal that an error of the driver is; None for any other error."""
    DatabaseError: type[Exception]
    """Base of the driver's errors, by which yoyo knows them, too."""
    has_transactional_ddl = True
    """yoyo undoes nothing: a step that fails is rolled back, or done again the next time."""
    connection: Any
    look: BaseInspection

    def __init__(self, url: str, release: Release) -> None:
        self.url = url
        self.release = release
        self.installed = 0
        self.notices: list[str] = []
        self.engine = engine_for_url(url)
        self._driver_connection = self.engine.connect(url)
        self.use(self._driver_connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.engine.close(self._driver_connection)

    def transaction(self) -> AbstractContextManager[None]:
        """Open none for yoyo: `alone` has opened one, where the engine's DDL obeys it."""
        return nullcontext()

    def step_up(self, target: int) -> int | None:
        """Install the next migration and return its number.

        When `target` is reached already, mend what stands there and return None. Unless a step
        before this one has just set roles, rights and comments, set them once more.
        """
        with refusals(self.DatabaseError, self.REFUSAL), self.alone(installing=True):
            before = self.installed
            self.installed = self.release.installed(self.look.installed_ids())
            self.prepare()
            if self.installed >= target:
                if self.mend() or self.installed != before:
                    self.refresh()
                return None
            numbered = self.release.get(self.installed + 1)
            numbered.migration.process_steps(self, "apply")
            self._settle(numbered)
            self.remember(numbered, "apply")
        self.installed = numbered.number
        return numbered.number

    def step_down(self, target: int | None, *, force: bool) -> tuple[int | None, int | None]:
        """Remove the newest migration.

        Args:
            target: the number to stop at; None: one below the newest.
            force: also when messages are thrown away.

        Returns:
            The number removed (None: nothing was above the target), and the target.
        """
        with refusals(self.DatabaseError, self.REFUSAL), self.alone(installing=False):
            self.installed = installed = self.release.installed(self.look.installed_ids())
            target = max(installed - 1, 0) if target is None else target
            if installed <= target:
                return None, target
            numbered = self.release.get(installed)
            # Ask for the whole way, so that a refusal leaves nothing half way.
            way = map(self.release.get, range(target + 1, installed + 1))
            if any(each.loses_messages for each in way) and not force:
                require_no_messages(self.losses())
            roles: Mapping[str, bool] = {}
            if installed == 1:
                self.require_removable()
                roles = self.look.roles()
            else:
                # The steps restore routines of the release before.
                self.prepare()
            numbered.migration.process_steps(self, "rollback")
            if installed == 1:
                self.remove()
                self.say(self.look.roles_that_stay(roles))
            else:
                self._comment(installed - 1)
                self._settle(self.release.get(installed - 1))
                self.remember(numbered, "rollback")
        self.installed = installed - 1
        return installed, target

    def use(self, driver_connection: Any) -> None:
        """Set `connection` and `look` for a new connection of the driver."""
        self.connection = self.CONNECTION(driver_connection)
        self.look = self.INSPECTION(driver_connection)

    @abstractmethod
    def alone(self, *, installing: bool) -> AbstractContextManager[None]:
        """Let no other migration run during a block, and refuse what would fail in it.

        Where the engine's DDL obeys a transaction the block is one.

        Args:
            installing: the tables of the bookkeeping are there from then on.
        """

    def prepare(self) -> None:  # noqa: B027 - most engines need nothing
        """Do what a step that makes routines needs beforehand; nothing on most engines."""

    def mend(self) -> bool:
        """Make routines anew that a change of the server has spoilt; return whether any was."""
        return False

    def refresh(self) -> None:
        """See once more to what an earlier migration, or psql, had to leave out."""
        self._comment(self.installed)
        self.grant(self.installed)

    def losses(self) -> Losses:
        """Return what is lost when the tables are, and keep it from becoming more."""
        return self.look.losses()

    def require_removable(self) -> None:  # noqa: B027 - remove.sql refuses, too
        """Refuse to remove rowq where that is to be found out beforehand."""

    def remove(self) -> None:
        """Remove what the migrations have left: the bookkeeping, and what holds it."""
        self.run("remove.sql")

    def run(self, name: str) -> None:
        """Run one of the engine's own scripts, such as preflight.sql."""
        self.connection.execute(self.release.text(name))

    def run_grants(self, text: str) -> None:
        """Run grants.sql, and keep what it says."""
        self.connection.execute(text)

    def grant(self, number: int) -> None:
        """See to roles and rights, as they are after the migration of this number."""
        if text := self.release.files(number).get(GRANTS):
            self.run_grants(text)

    def say(self, notices: Iterable[str]) -> None:
        """Keep notices that were not said before."""
        self.notices += [notice for notice in notices if notice not in self.notices]

    def remember(self, numbered: Numbered, operation: str) -> None:
        """Log what was done with a migration, and note that it is installed, or is no more."""
        with closing(self._driver_connection.cursor()) as cursor:
            for statement, values in self.BOOKKEEPING.notes(numbered, operation):
                cursor.execute(statement, values)

    def _comment(self, number: int) -> None:
        """Let the catalog say of everything what it said after the migration of this number."""
        if text := self.release.files(number).get(COMMENTS):
            self.connection.execute(text)

    def _settle(self, numbered: Numbered) -> None:
        """Note what is installed now, and see to the rights of everything that is new."""
        self.connection.execute(self.BOOKKEEPING.version_text(numbered))
        self.grant(numbered.number)


def require_no_messages(losses: Losses) -> None:
    """Refuse a rollback that would throw messages away."""
    if losses.unfinished or losses.archived:
        raise MessagesLeft(
            f"{MessagesLeft.number} messages_left: this rollback would throw away {losses}",
            "Finish, cancel or purge them first, purge_archive those that are kept, or use force.",
        )
