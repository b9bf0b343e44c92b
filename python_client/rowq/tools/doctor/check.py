"""The checks of an examination, what an engine gives for them, and the sessions that they use."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rowq.engines import TOOLS, engine_for_url, engine_module, is_driver_error
from rowq.tools.migrate.errors import MissingPrivilege


class Status(StrEnum):
    """What a check came to; unknown: this account may not look."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        check_name: what, in a few words.
        status: what it came to.
        detail: what was found, and what to do about it.
    """

    check_name: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a server that matters to rowq.

    Attributes:
        name: as the engine's manual has it.
        query: returns one row of one value.
        is_good: whether a value is as it should be.
        otherwise: the status when it is not.
        advice: why it matters, and what to do.
    """

    name: str
    query: str
    is_good: Callable[[Any], bool]
    otherwise: Status
    advice: str


@dataclass(frozen=True, slots=True)
class EngineChecks:
    """What an examination has to know of an engine.

    Attributes:
        now: a query of the server's time, in seconds since 1970 UTC.
        version: a query of the server's version, one value.
        is_supported: whether rowq runs on that version.
        supported: which versions those are, for people to read.
        settings: what else to look at.
        before: what a session does first, and again before it calls a routine, so that a DBA who
            examines runs the code of the database's owner with no more rights than the owner has;
            None: nothing.
        after: what takes that back before the session ends.
        runs_as_caller: whether a routine runs with its caller's rights: where one is not as shipped
            none is called.
        more: yields what else there is to say, where rowq is installed; None: nothing.
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
    """Return what there is to know of the engine of a URL."""
    checks: EngineChecks = engine_module(engine_for_url(url).name, "doctor", TOOLS).CHECKS
    return checks


@contextmanager
def session(url: str) -> Iterator[Any]:
    """Connect, and be no more than the owner of the database until leaving.

    Raises:
        CannotConnect: the database could not be reached.
        MissingPrivilege: a DBA cannot act as the database's owner.
    """
    engine, known = engine_for_url(url), checks_of(url)
    connection = engine.connect(url)
    try:
        be_no_more_than_the_owner(connection, known)
        yield connection
        _execute(connection, known.after)
    finally:
        engine.close(connection)


def be_no_more_than_the_owner(connection: Any, known: EngineChecks) -> None:
    """Let a DBA's session run nothing with more rights than whoever made it has.

    Raises:
        MissingPrivilege: a DBA cannot act as the database's owner.
    """
    try:
        _execute(connection, known.before)
    except Exception as error:
        if not is_driver_error(error):
            raise
        raise MissingPrivilege(
            f"{MissingPrivilege.number} missing_privilege: this account cannot act as the owner"
            f" of the database, and must not run its code as a DBA: {error}"
        ) from error


def _execute(connection: Any, statement: str | None) -> None:
    if statement is not None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement)


def value_of(connection: Any, query: str) -> Any:
    """Return the one value of a query; None where there is no row."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None


def is_one_of(*values: Any) -> Callable[[Any], bool]:
    """Return whether a value is among these; texts in any case."""
    known = {_plain(value) for value in values}
    return lambda value: _plain(value) in known


def _plain(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def line_of(error: Exception) -> str:
    """Return the text of an error in one line."""
    return " ".join(str(error).split())
