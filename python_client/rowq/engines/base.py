"""What a database engine has to provide; one package of rowq per engine."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, ClassVar, NoReturn

from rowq.errors import EngineUnknown, Refused

Row = tuple[Any, ...]
"""One row of a result: the contract's columns in order, in the contract's Python types."""


class Engine(ABC):
    """Calls routines through one driver, and knows that driver's connections and errors.

    Python types of the contract: bool, int, float, str, bytes, decoded JSON and aware UTC datetime.
    """

    name: ClassVar[str]
    """Name of the engine, and of its directories below sql/ and migrations/."""
    schemes: ClassVar[tuple[str, ...]]
    """URL schemes that mean this engine."""
    driver_package: ClassVar[str]
    """Top-level package of the driver; a connection whose class lives there is this engine's."""
    other_drivers: ClassVar[Mapping[str, str]] = {}
    """Packages of other drivers whose connections are taken, and who calls by them: a package with
    a module of the engine's name, whose ENGINE does."""

    @abstractmethod
    def connect(self, url: str) -> Any:
        """Open a connection in autocommit; raises CannotConnect."""

    @abstractmethod
    async def connect_async(self, url: str) -> Any:
        """As connect, with the driver's asynchronous connection."""

    @abstractmethod
    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Call `routine` with an argument for every parameter; never commits.

        Raises the refusal that the driver's error stands for, InvalidArgument for what cannot be
        sent, and any other error of the driver as it is.
        """

    @abstractmethod
    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        """As call, but give up with a passing error instead of waiting for a lock.

        After a moment, as locks are often held for no longer: at most a second where the engine
        counts in seconds. On a connection of rowq's own in autocommit; other calls on it may then
        give up so, too.
        """

    @abstractmethod
    async def call_async(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        """As call, on an asynchronous connection."""

    @abstractmethod
    def close(self, connection: Any) -> None:
        """Close a connection; never raises because it is already broken."""

    @abstractmethod
    async def close_async(self, connection: Any) -> None:
        """As close, on an asynchronous connection."""

    @abstractmethod
    def is_async(self, connection: Any) -> bool:
        """Whether the connection is an asynchronous one."""

    @abstractmethod
    def is_usable(self, connection: Any) -> bool:
        """Whether the idle connection is still up, as far as this side can see without asking."""

    def is_idle(self, connection: Any) -> bool:
        """Whether a connection of rowq's own is up, in no call and in no transaction.

        As far as this side can see without asking; `is_usable` allows a transaction.
        """
        return self.is_usable(connection)

    def break_off(self, connection: Any) -> None:
        """Close a connection in the middle of a call, and end the call where that is cheap."""
        self.close(connection)

    async def break_off_async(self, connection: Any) -> None:
        """As break_off, on an asynchronous connection."""
        await self.close_async(connection)

    @abstractmethod
    def in_transaction(self, connection: Any) -> bool:
        """Whether a call made now would be inside a transaction that the caller must end."""

    @abstractmethod
    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        """Commit on leaving, roll back on an exception; inside another one it is a savepoint."""

    def savepoint(self, connection: Any) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a block for a call: if it raises, an open transaction is as before it and usable.

        Outside a transaction it does nothing, and nothing where a routine sees to that by itself.
        """
        return nullcontext()

    def savepoint_async(
        self,
        connection: Any,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[None]:
        """As savepoint, on an asynchronous connection."""
        return nullcontext()

    @abstractmethod
    def watch(self, connection: Any, place: str) -> None:
        """Warn if a caller's connection is closed before its present transaction is committed.

        Something was enqueued in that, at `place`. It does nothing if the driver does not show it.
        """

    @abstractmethod
    def refusal(self, error: Exception) -> Refused | None:
        """Return the refusal that a driver's error stands for, or None."""

    @abstractmethod
    def is_denied(self, error: Exception) -> bool:
        """Whether the error means that the account may not call the routine that it called."""

    @abstractmethod
    def grant(self, connection: Any, role: str, error: Exception) -> str:
        """Return in words what gives the account a role, the statement between quotation marks.

        error: what the server has denied the account; it may name it.
        """

    @abstractmethod
    def is_connection_lost(self, error: Exception) -> bool:
        """Whether the error means that the connection is gone, or could not be made."""

    def was_sent(self, error: Exception) -> bool:  # noqa: ARG002 - for those who know better
        """Whether the call that ended with this loss of the connection may have taken effect.

        False only where the driver says that it had not begun to send it.
        """
        return True

    @abstractmethod
    def is_wrong_server(self, error: Exception) -> bool:
        """Whether the server does not write, as a replica or a former primary: nothing was done."""

    @abstractmethod
    def is_undone(self, error: Exception) -> bool:
        """Whether the server undid a call because of what others did at the time, as a deadlock.

        A call that was a transaction of its own may be made again; in a transaction, the whole of
        it is undone, or to be undone, and to be made again.
        """

    @abstractmethod
    def is_shortage(self, error: Exception) -> bool:
        """Whether the server lacks something that it may soon have: a lock, room, a session..."""

    def is_transient(self, error: Exception) -> bool:
        """Whether the same call may succeed in a moment: all of the above."""
        return (
            self.is_connection_lost(error)
            or self.is_wrong_server(error)
            or self.is_undone(error)
            or self.is_shortage(error)
        )


class ListeningEngine(Engine):
    """An engine with the routines listen and unlisten, which can tell a connection of messages."""

    @abstractmethod
    def is_direct(self, connection: Any) -> bool:
        """Whether the session of the connection is the server's own, and not one of a pooler."""


class PipeliningEngine(Engine):
    """An engine that makes several calls in one transaction and one round trip."""

    @abstractmethod
    def can_pipeline(self) -> bool:
        """Whether the driver at hand can do that."""

    @abstractmethod
    def call_all(
        self, connection: Any, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[list[Row]]:
        """Call routines on a connection in autocommit; an error of the server undoes all of them.

        Raises what `call` does. After any error the connection is of no use any more.
        """


class SynchronousEngine(Engine):
    """An engine whose driver has no asynchronous connection that rowq uses."""

    product: ClassVar[str]
    """What the engine is called in errors."""

    async def connect_async(self, url: str) -> Any:  # noqa: ARG002 - said for every URL
        """Raise EngineUnknown."""
        self._refuse()

    async def call_async(
        self,
        connection: Any,  # noqa: ARG002 - there is none
        routine: str,  # noqa: ARG002
        arguments: Mapping[str, Any],  # noqa: ARG002
    ) -> list[Row]:
        """Raise EngineUnknown."""
        self._refuse()

    async def close_async(self, connection: Any) -> None:
        """As close."""
        self.close(connection)

    def is_async(self, connection: Any) -> bool:  # noqa: ARG002 - most drivers have no such one
        """Whether the connection is an asynchronous one."""
        return False

    def _refuse(self) -> NoReturn:
        raise EngineUnknown(
            f"AsyncQueue does not serve {self.product}: use rowq.connect, in a thread if need be"
        )
