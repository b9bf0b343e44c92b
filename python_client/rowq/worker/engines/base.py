"""What a transactional worker needs of an engine: a transaction that it lends its handlers."""

# ruff: noqa: N818 - TransactionEnded says what happened, as the contract's errors do

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from rowq.errors import RowqError


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
