"""A backend of yoyo for python-oracledb, with everything of ours under names that begin with rowq.

Every statement of DDL commits by itself, so a migration is no transaction: it may be run again
after a crash at any unit, and is remembered at its end only. Who migrates keeps a table locked in a
second session: the first one loses its locks with every statement of DDL.
"""

import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import oracledb
from yoyo.backends.base import DatabaseBackend

from rowq.engines import engine_for_url
from rowq.migrate.errors import (
    BY_NUMBER,
    MigrationError,
    MissingPrivilege,
)
from rowq.migrate.frozen import GRANTS
from rowq.migrate.release import Numbered, Release
from rowq.migrate.shared import refusals, require_no_messages, tables_in_use
from rowq.oracle.statements import forgiven, units, version_text
from rowq.oracle.status import Look, missing_roles

_FAULT = re.compile(r"RQ8\d\d \w+[^\n]*")
_LACKS_PRIVILEGE = {1031, 1950}
_BUSY = {54, 60, 4021, 30006}
_LOG = """
insert into rowq_migration_log (
    id, migration_hash, migration_id, operation, username, hostname, created_at_utc
)
values (:p_id, :p_hash, :p_migration, :p_operation, user, :p_host, :p_moment)
"""
_MARK = """
insert into rowq_migration (migration_hash, migration_id, applied_at_utc)
values (:p_hash, :p_migration, :p_moment)
"""
_UNMARK = "delete from rowq_migration m where m.migration_hash = :p_hash"


class Connection:
    """A connection that runs whole scripts; yoyo sees the rest of the driver's."""

    def __init__(self, driver_connection: Any) -> None:
        self._connection = driver_connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, text: str) -> None:
        """Run a script, one unit after the other; what was done before is no error."""
        for unit in units(text):
            with self._connection.cursor() as cursor:
                try:
                    cursor.execute(unit)
                except oracledb.DatabaseError as error:
                    if error.args[0].code not in forgiven(unit):
                        raise


class Backend(DatabaseBackend):  # type: ignore[misc]
    """Installs and removes the migrations of a release.

    Args:
        url: the URL of the account that owns rowq, or shall.
        release: the migrations to work with.

    Attributes:
        installed: the newest installed number, as of the last step.
        notices: what was left out, each once.
    """

    driver_module = "oracledb"

    def __init__(self, url: str, release: Release) -> None:
        self.notices: list[str] = []
        self.installed = 0
        self.release = release
        super().__init__(url, "rowq_migration")

    def connect(self, url: str) -> Connection:
        """Connect in autocommit; raises CannotConnect."""
        return Connection(engine_for_url(url).connect(url))

    @contextmanager
    def transaction(self, rollback_on_exit: bool = False) -> Iterator[None]:  # noqa: ARG002
        """Open none: the first statement of a step would end it."""
        yield

    @contextmanager
    def lock(self, timeout: float = 60) -> Iterator[None]:
        """Hold migrations to one at a time; refuse what would fail."""
        self.connection.execute(self.release.text("preflight.sql"))
        self.connection.execute(self.release.text("bookkeeping.sql"))
        keeper = engine_for_url(self.uri).connect(self.uri)
        try:
            keeper.autocommit = False
            with keeper.cursor() as cursor:
                cursor.execute(
                    f"lock table rowq_migration_lock in exclusive mode wait {int(timeout)}"
                )
            yield
        finally:
            engine_for_url(self.uri).close(keeper)

    def step_up(self, target: int) -> int | None:
        """Install the next migration and return its number.

        When `target` is reached already: see to roles and rights once more, and return None.
        """
        with refusals(oracledb.DatabaseError, _refusal), self.lock():
            self.installed = self.release.installed(Look(self.connection).installed_ids())
            if self.installed >= target:
                self._grant(self.installed)
                return None
            numbered = self.release.get(self.installed + 1)
            numbered.migration.process_steps(self, "apply")
            self._settle(numbered)
            self._note(numbered, "apply")
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
        with refusals(oracledb.DatabaseError, _refusal):
            with self.lock():
                look = Look(self.connection)
                self.installed = installed = self.release.installed(look.installed_ids())
                target = max(installed - 1, 0) if target is None else target
                if installed <= target:
                    return None, target
                numbered = self.release.get(installed)
                if numbered.loses_messages and not force:
                    require_no_messages(look.losses())
                numbered.migration.process_steps(self, "rollback")
                if installed > 1:
                    self._settle(self.release.get(installed - 1))
                    self._note(numbered, "rollback")
            if installed == 1:
                # The lock is a table of the bookkeeping, too.
                self.connection.execute(self.release.text("remove.sql"))
        self.installed = installed - 1
        return installed, target

    def _settle(self, numbered: Numbered) -> None:
        """Note what is installed now, and see to the rights of everything that is new."""
        self.connection.execute(version_text(numbered))
        self._grant(numbered.number)

    def _grant(self, number: int) -> None:
        self.connection.execute(self.release.files(number).get(GRANTS, ""))
        if not number:
            return
        look = Look(self.connection)
        found = (*missing_roles(look.roles()), *look.rights_beyond())
        self.notices += [notice for notice in found if notice not in self.notices]

    def _note(self, numbered: Numbered, operation: str) -> None:
        """Remember, or forget, a migration, and log it."""
        moment = datetime.now(UTC).replace(tzinfo=None)
        named = {"p_hash": numbered.migration.hash, "p_migration": numbered.id}
        with self.connection.cursor() as cursor:
            cursor.setinputsizes(p_moment=oracledb.DB_TYPE_TIMESTAMP)
            cursor.execute(
                _LOG,
                {
                    **named,
                    "p_id": str(uuid.uuid4()),
                    "p_operation": operation,
                    "p_host": socket.gethostname(),
                    "p_moment": moment,
                },
            )
        with self.connection.cursor() as cursor:
            if operation == "apply":
                cursor.execute(_MARK, {**named, "p_moment": moment})
            else:
                cursor.execute(_UNMARK, {"p_hash": named["p_hash"]})


def _refusal(error: oracledb.DatabaseError) -> MigrationError | None:
    number, text = error.args[0].code, error.args[0].message
    if fault := _FAULT.search(text):
        return BY_NUMBER[fault.group()[:5]](fault.group(), _REMEDIES.get(fault.group()[:5]))
    if number in _LACKS_PRIVILEGE:
        return MissingPrivilege(
            f"{MissingPrivilege.number} missing_privilege: {text}",
            "The owner needs create session, table, sequence, type and procedure, and a quota.",
        )
    if number in _BUSY:
        return tables_in_use(", or another migration has not ended")
    return None


_REMEDIES = {
    "RQ801": "rowq needs Oracle Database 19c or newer.",
    "RQ802": "It was left alone. Look who made it, or give rowq another account.",
    "RQ803": "Connect as the account that owns rowq, without owner= in the URL.",
}
