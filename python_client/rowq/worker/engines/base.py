"""The transaction that a transactional worker lends to its handlers.

While a handler has the connection, some of its methods are replaced. A statement is recognized by
its first words; the effects of others, such as a procedure call, are detected afterwards.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from rowq.engines.connections import LENT_FOR
from rowq.errors import ForbiddenInHandler, RowqError

# ruff: noqa: N818 - named like the contract's errors

_WORD = re.compile(r"[^\W\d]\w*")
_BLANK = re.compile(r"\s+|--[^\n]*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_WORDS = 4


class TransactionEnded(RowqError):
    """A handler or the server ended the worker's transaction.

    committed: whether the kept writes of earlier handlers are in effect, or there were none. kept:
    whether all writes of the last handler are in effect. is_transient: whether the server ended it
    because of a transient error, such as a deadlock.
    """

    def __init__(
        self, text: str, *, committed: bool, kept: bool = False, is_transient: bool = False
    ) -> None:
        """Set the state of the writes."""
        super().__init__(text)
        self.committed = committed
        self.kept = kept
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A handler continued after an error that aborted its transaction; it was rolled back.

    error: the database's error. is_transient: as in TransactionEnded.
    """

    error: str
    is_transient: bool


class WorkTransaction(ABC):
    """A transaction of a transactional worker, always READ COMMITTED.

    `lend` the connection to each handler, then `keep` or `undo` its writes. Each method raises
    TransactionEnded, or the driver's errors.
    """

    @abstractmethod
    def begin(self) -> None:
        """Begin it, on a connection of rowq's own in autocommit."""

    @abstractmethod
    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        """Lend a handler the connection for a block.

        The connection refuses to end the transaction, and to finish or extend the claim
        (ForbiddenInHandler). If the transaction has ended anyway, it refuses every statement.
        """

    @abstractmethod
    def keep(self) -> AbortedTransaction | None:
        """Keep the handler's writes; if it aborted the transaction, roll back and return that."""

    @abstractmethod
    def undo(self) -> None:
        """Roll back the handler's writes."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the kept writes and later ones."""

    @abstractmethod
    def abandon(self) -> None:
        """Roll everything back; never raises the driver's errors."""


class Notifications(ABC):
    """Notifications of new messages on an open connection."""

    @abstractmethod
    def sleep(self, seconds: float) -> None:
        """Wait up to `seconds` for input, while other threads may use the connection.

        Raises the driver's errors.
        """

    @abstractmethod
    def wait(self, seconds: float) -> list[str]:
        """Return the queue names received so far; wait up to `seconds` for the first.

        Raises the driver's errors.
        """

    @property
    @abstractmethod
    def received(self) -> int:
        """Number of notifications received so far, including other queues'."""

    @abstractmethod
    def end(self) -> None:
        """Stop receiving until `listen` is called again; raises the driver's errors."""

    @abstractmethod
    def is_deaf(self, other: Any, seconds: float) -> bool:
        """Whether a notification of another connection does not arrive within `seconds`."""


def refuse_ending(what: str) -> NoReturn:
    """Raise ForbiddenInHandler for an action that would end the transaction."""
    raise ForbiddenInHandler(
        f"{what}: a transactional handler must not end the worker's transaction; it commits with"
        " the completion"
    )


def refuse_after_end() -> NoReturn:
    """Raise ForbiddenInHandler for a statement after the transaction's end."""
    raise ForbiddenInHandler(
        "the worker's transaction has ended, by the handler or the server; return from the handler"
    )


@contextmanager
def lent(connection: Any, claim_id: int, **methods: Any) -> Iterator[Any]:
    """Yield the connection with some methods replaced, for a handler of this claim."""
    replaced = {LENT_FOR: claim_id, **methods}
    hidden = {name: vars(connection)[name] for name in replaced if name in vars(connection)}
    vars(connection).update(replaced)
    try:
        yield connection
    finally:
        for name in replaced:
            with suppress(KeyError):
                del vars(connection)[name]
        vars(connection).update(hidden)


def refusing(what: str) -> Callable[..., NoReturn]:
    """Return a method that always refuses."""

    def refuse(*_args: Any, **_options: Any) -> NoReturn:
        refuse_ending(what)

    return refuse


def first_words(
    statement: str,
    start: int = 0,
    *,
    blank: re.Pattern[str] = _BLANK,
    comments_nest: bool = False,
) -> list[str]:
    """Return the first four words of a statement in lower case, without comments.

    blank: separators other than /* */ comments. comments_nest: whether /* */ comments nest.
    """
    words: list[str] = []
    while len(words) < _WORDS:
        start = _after_blanks(statement, start, blank, comments_nest)
        found = _WORD.match(statement, start)
        if not found:
            break
        words.append(found.group().lower())
        start = found.end()
    return words


def is_one_of(words: list[str], forbidden: Collection[tuple[str, ...]]) -> bool:
    """Whether the words begin with one of the phrases."""
    return any(tuple(words[: len(phrase)]) == phrase for phrase in forbidden)


def _after_blanks(statement: str, start: int, blank: re.Pattern[str], comments_nest: bool) -> int:
    """Return where the next word may begin."""
    while True:
        if found := blank.match(statement, start):
            start = found.end()
        elif statement.startswith("/*", start):
            start = _after_comment(statement, start, comments_nest)
        else:
            return start


def _after_comment(statement: str, start: int, comments_nest: bool) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(statement, start):
        if mark.group() == "*/":
            depth -= 1
        elif comments_nest or depth == 0:
            depth += 1
        if depth == 0:
            return mark.end()
    return len(statement)
