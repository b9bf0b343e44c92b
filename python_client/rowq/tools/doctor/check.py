"""Types of checks, the checks of an engine, and the session they use."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rowq.engines import TOOLS, engine_for_url, engine_module, is_driver_error
from rowq.tools.migrate.errors import MissingPrivilege


class Status(StrEnum):
    """Result of a check; unknown: this account lacks the privilege to check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result; `detail` has what was found and what to do."""

    check_name: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a server that matters to rowq.

    Attributes:
        name: the name in the engine's manual.
        query: returns one row of one value.
        is_good: whether the value is right.
        otherwise: the status if it is not.
        advice: why it matters, and what to do.
    """

    name: str
    query: str
    is_good: Callable[[Any], bool]
    otherwise: Status
    advice: str


@dataclass(frozen=True, slots=True)
class EngineChecks:
    """The checks of an engine.

    Attributes:
        now: a query of the server's time, in seconds since 1970 UTC.
        version: a query of the server's version, one value.
        is_supported: whether rowq runs on that version.
        supported: the supported versions, as text.
        settings: settings to check.
        before: a statement that limits a DBA's session to the rights of the database's owner, run
            first and again before a routine is called; None: no statement.
        after: a statement that undoes `before`.
        runs_as_caller: whether routines run with the caller's rights. Then no routine is called if
            one is modified.
        more: yields further checks if rowq is installed.
    """

    now: str
    version: str
    is_supported: Callable[[Any], bool]
    supported: str
    settings: tuple[Setting, ...]
    before: str | None = None
    after: str | None = None
    runs_as_caller: bool = False
    more: Callable[[Any], Iterator[Check]] | None = None


def checks_of(url: str) -> EngineChecks:
    """Return the checks of the engine of a URL."""
    checks: EngineChecks = engine_module(engine_for_url(url).name, "doctor", TOOLS).CHECKS
    return checks


@contextmanager
def session(url: str) -> Iterator[Any]:
    """Connect, with at most the rights of the database's owner.

    Raises:
        CannotConnect: the database could not be reached.
        MissingPrivilege: a DBA cannot act as the database's owner.
    """
    engine, checks = engine_for_url(url), checks_of(url)
    connection = engine.connect(url)
    try:
        limit_rights(connection, checks)
        yield connection
        _execute(connection, checks.after)
    finally:
        engine.close(connection)


def limit_rights(connection: Any, checks: EngineChecks) -> None:
    """Limit a DBA's session to the rights of the database's owner; raise MissingPrivilege."""
    try:
        _execute(connection, checks.before)
    except Exception as error:
        if not is_driver_error(error):
            raise
        raise MissingPrivilege(
            f"{MissingPrivilege.number} missing_privilege: this account cannot act as the owner of"
            f" the database, and must not run the owner's code as a DBA: {error}"
        ) from error


def _execute(connection: Any, statement: str | None) -> None:
    if statement is not None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement)


def value_of(connection: Any, query: str) -> Any:
    """Return the only value of a query; None if there is no row."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None


def is_one_of(*values: Any) -> Callable[[Any], bool]:
    """Return a check whether a value is among these, ignoring case."""
    known = {_plain(value) for value in values}
    return lambda value: _plain(value) in known


def _plain(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def line_of(error: Exception) -> str:
    """Return the text of an error as one line."""
    return " ".join(str(error).split())
