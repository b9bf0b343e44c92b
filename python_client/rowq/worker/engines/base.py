"""What a transactional worker needs of an engine: a transaction that it lends its handlers.

For as long as a handler has the connection, methods of it are replaced. A statement is known by its
first words; what hides its deeds, such as a call of a procedure, is noticed afterwards.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from rowq.engines.connections import LENT_FOR
from rowq.errors import ForbiddenInHandler, RowqError

# ruff: noqa: N818 - TransactionEnded says what happened, as the contract's errors do

_WORD = re.compile(r"[^\W\d]\w*")
_BLANK = re.compile(r"\s+|--[^\n]*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_WORDS = 4


class TransactionEnded(RowqError):
    """A worker's transaction is over before the worker ended it: by a handler, or by the server.

    committed: whether what was kept of earlier handlers is in effect; also where they wrote
    nothing. kept: whether all that the last handler wrote is in effect. is_transient: whether the
    server ended it for a reason that is likely to be gone at the next try, such as a deadlock.
    """

    def __init__(
        self, text: str, *, committed: bool, kept: bool = False, is_transient: bool = False
    ) -> None:
        """Say what has become of what was written."""
        super().__init__(text)
        self.committed = committed
        self.kept = kept
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A handler went on after an error that its transaction did not survive; it was undone.

    error: what the database had said. is_transient: as in TransactionEnded.
    """

    error: str
    is_transient: bool


class WorkTransaction(ABC):
    """A transaction of a transactional worker, read committed whatever the server's default is.

    It goes from one handler to the next: `lend` the connection to each, then `keep` or `undo` what
    it wrote. Each method raises TransactionEnded, or the driver's errors.
    """

    @abstractmethod
    def begin(self) -> None:
        """Begin it, on a connection of rowq's own in autocommit."""

    @abstractmethod
    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        """Lend a handler the connection, which refuses what is the worker's to do, for a block.

        That is to end the transaction, and to finish or extend the claim: ForbiddenInHandler. Where
        something has ended it all the same, no further statement is taken.
        """

    @abstractmethod
    def keep(self) -> AbortedTransaction | None:
        """Keep what the handler wrote, unless it has spoiled that: then undo it and say so."""

    @abstractmethod
    def undo(self) -> None:
        """Undo what the handler wrote."""

    @abstractmethod
    def commit(self) -> None:
        """Commit all that was kept, and what was done since."""

    @abstractmethod
    def abandon(self) -> None:
        """Roll all of it back, if there is still something; never raises the driver's errors."""


class Notifications(ABC):
    """What an open connection is told of new messages, between the calls made on it."""

    @abstractmethod
    def wait(self, seconds: float) -> list[str]:
        """Return the names of queues told so far, waiting so long for the first.

        Raises the driver's errors.
        """

    @property
    @abstractmethod
    def received(self) -> int:
        """How many notifications have come so far, those of others too."""

    @abstractmethod
    def end(self) -> None:
        """Receive none any more, until `listen` is called again; raises the driver's errors."""

    @abstractmethod
    def is_deaf(self, other: Any, seconds: float) -> bool:
        """Whether what another connection tells does not come within so many seconds."""


def refuse_ending(what: str) -> NoReturn:
    """Raise ForbiddenInHandler for something that would end the transaction."""
    raise ForbiddenInHandler(
        f"{what}: a handler may not end its worker's transaction, which is committed with the"
        " message's completion"
    )


def refuse_after_end() -> NoReturn:
    """Raise ForbiddenInHandler for everything after the transaction's end."""
    raise ForbiddenInHandler(
        "the handler has ended its worker's transaction, or the server has; nothing more is taken"
    )


@contextmanager
def lent(connection: Any, claim_id: int, **methods: Any) -> Iterator[Any]:
    """Yield the connection with `methods` in place of its own, for a handler of this claim."""
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
    """Return a method that refuses, whatever it is given."""

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
    """Return the first four words of a statement in lower case, without comments before them.

    blank: what else than comments in slashes and stars stands between words. comments_nest: whether
    such a comment may hold another one.
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
    """Whether the words begin with one of these phrases."""
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
