"""The steps that install and remove migrations, in the same order on every engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from typing import Any, ClassVar, Self

from rowq.engines import engine_for_url
from rowq.tools.migrate.client_script import Bookkeeping
from rowq.tools.migrate.comments import COMMENTS
from rowq.tools.migrate.errors import MessagesLeft, MigrationError, refusals
from rowq.tools.migrate.frozen import GRANTS
from rowq.tools.migrate.inspection import BaseInspection, Losses
from rowq.tools.migrate.release import Numbered, Release, recorded


class ScriptConnection(ABC):
    """A driver's connection that can also run whole scripts."""

    def __init__(self, driver_connection: Any) -> None:
        self.driver_connection = driver_connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver_connection, name)

    @abstractmethod
    def execute(self, text: str) -> Any:
        """Run the statements of a script."""


class BaseInstaller(ABC):
    """Installs and removes the migrations of a release step by step.

    Engines define locking, refusals and extra work.

    Attributes:
        installed: the newest installed number, as of the last step.
        notices: what was left out, and what to do.
        connection: runs whole scripts by its method `execute`.
        inspection: queries on that connection.
    """

    BOOKKEEPING: ClassVar[Bookkeeping]
    CONNECTION: ClassVar[type[ScriptConnection]]
    INSPECTION: ClassVar[type[BaseInspection]]
    REFUSAL: Callable[[Any], MigrationError | None]
    """Turns a driver's error into a refusal; None for any other error."""
    DatabaseError: type[Exception]
    """Base of the driver's errors."""
    connection: Any
    inspection: BaseInspection

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

    def step_up(self, target: int) -> int | None:
        """Install the next migration and return its number.

        At `target`, repair the installation and return None. Set roles, privileges and comments
        again, unless the preceding step has just done so.
        """
        with refusals(self.DatabaseError, self.REFUSAL), self.alone(installing=True):
            before = self.installed
            self.installed = self.release.installed(self.inspection.installed_ids())
            self.prepare()
            if self.installed >= target:
                if self.repair() or self.installed != before:
                    self.refresh()
                return None
            numbered = self.release.get(self.installed + 1)
            self.run_steps(numbered, "apply")
            self._settle(numbered)
            self.record(numbered, "apply")
        self.installed = numbered.number
        return numbered.number

    def step_down(self, target: int | None, *, force: bool) -> tuple[int | None, int | None]:
        """Remove the newest migration.

        Args:
            target: the number to stop at; None is one below the newest.
            force: delete messages if necessary.

        Returns:
            The number removed (None if the target was reached), and the target.
        """
        with refusals(self.DatabaseError, self.REFUSAL), self.alone(installing=False):
            self.installed = installed = self.release.installed(self.inspection.installed_ids())
            target = max(installed - 1, 0) if target is None else target
            if installed <= target:
                return None, target
            numbered = self.release.get(installed)
            # Check all steps first, so that a refusal does not stop halfway.
            steps = map(self.release.get, range(target + 1, installed + 1))
            if any(each.loses_messages for each in steps) and not force:
                require_no_messages(self.losses())
            roles: Mapping[str, bool] = {}
            if installed == 1:
                self.require_removable()
                roles = self.inspection.roles()
            else:
                # The steps restore routines of the previous release.
                self.prepare()
            self.run_steps(numbered, "rollback")
            if installed == 1:
                self.remove()
                self.add_notices(self.inspection.roles_that_stay(roles))
            else:
                self._comment(installed - 1)
                self._settle(self.release.get(installed - 1))
                self.record(numbered, "rollback")
        self.installed = installed - 1
        return installed, target

    def use(self, driver_connection: Any) -> None:
        """Set `connection` and `inspection` for a new connection of the driver."""
        self.connection = self.CONNECTION(driver_connection)
        self.inspection = self.INSPECTION(driver_connection)

    @abstractmethod
    def alone(self, *, installing: bool) -> AbstractContextManager[None]:
        """Lock out other migrations for a block, and check its preconditions.

        If DDL is transactional, the block is a transaction. `installing` creates the tables of the
        bookkeeping.
        """

    def prepare(self) -> None:  # noqa: B027 - most engines need nothing
        """Prepare a step that creates routines; nothing to do on most engines."""

    def repair(self) -> bool:
        """Recreate routines broken by a change of the server; return whether there were any."""
        return False

    def refresh(self) -> None:
        """Set comments, roles and privileges that an earlier run had to leave out."""
        self._comment(self.installed)
        self.grant(self.installed)

    def losses(self) -> Losses:
        """Return what dropping the tables would delete, and block new messages."""
        return self.inspection.losses()

    def require_removable(self) -> None:  # noqa: B027 - remove.sql also refuses
        """Refuse to remove rowq, if that must be checked first."""

    def remove(self) -> None:
        """Remove the bookkeeping and the schema."""
        self.run("remove.sql")

    def run(self, name: str) -> None:
        """Run one of the engine's own scripts, such as preflight.sql."""
        self.connection.execute(self.release.text(name))

    def run_steps(self, numbered: Numbered, direction: str) -> None:
        """Run a migration's sections; a failed one is rolled back, or repeated by the next run."""
        for part in recorded(numbered.migration, direction):
            self.connection.execute(part.text)

    def run_grants(self, text: str) -> None:
        """Run grants.sql, and keep its notices."""
        self.connection.execute(text)

    def grant(self, number: int) -> None:
        """Set roles and privileges to those of a migration."""
        if text := self.release.files(number).get(GRANTS):
            self.run_grants(text)

    def add_notices(self, notices: Iterable[str]) -> None:
        """Add new notices."""
        self.notices += [notice for notice in notices if notice not in self.notices]

    def record(self, numbered: Numbered, operation: str) -> None:
        """Record an operation, apply or rollback."""
        with closing(self._driver_connection.cursor()) as cursor:
            for statement, values in self.BOOKKEEPING.records(numbered, operation):
                cursor.execute(statement, values)

    def _comment(self, number: int) -> None:
        """Restore the catalog comments of a migration."""
        if text := self.release.files(number).get(COMMENTS):
            self.connection.execute(text)

    def _settle(self, numbered: Numbered) -> None:
        """Record the version, and set privileges."""
        self.connection.execute(self.BOOKKEEPING.version_text(numbered))
        self.grant(numbered.number)


def require_no_messages(losses: Losses) -> None:
    """Refuse a rollback that would delete messages."""
    if losses.unfinished or losses.archived:
        raise MessagesLeft(
            f"{MessagesLeft.number} messages_left: this rollback would delete {losses}",
            "Finish, cancel or purge the messages and purge the archive first, or use:"
            " rowq rollback --force",
        )
