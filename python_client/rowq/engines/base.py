"""Interface of a database engine; one package of rowq per engine."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, ClassVar, NoReturn

from rowq.errors import EngineUnknown, Refused

Row = tuple[Any, ...]
"""One row of a result: the contract's columns in order, in the contract's Python types."""

LONGEST_WAIT_SECONDS = 3600.0
"""The longest wait in the contract; the routine refuses a longer one."""


class Engine(ABC):
    """Calls through one driver, with its connections and errors.

    Python types of the contract: bool, int, float, str, bytes, decoded JSON and aware UTC datetime.
    """

    name: ClassVar[str]
    """Name of the engine and of its directories in sql/ and migrations/."""
    schemes: ClassVar[tuple[str, ...]]
    """URL schemes of this engine."""
    driver_package: ClassVar[str]
    """Top-level package of the driver, and of its connection classes."""
    other_drivers: ClassVar[Mapping[str, str]] = {}
    """Other supported drivers, and for each a package with a module of the engine's name, whose
    ENGINE makes calls through it."""

    @abstractmethod
    def connect(self, url: str) -> Any:
        """Open a connection in autocommit; raises CannotConnect."""

    @abstractmethod
    async def connect_async(self, url: str) -> Any:
        """As connect, with the driver's asynchronous connection."""

    @abstractmethod
    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Call `routine` with an argument for every parameter; never commit.

        Raises the refusal for a routine's error, InvalidArgument for a value that cannot be sent,
        and other errors of the driver unchanged.
        """

    @abstractmethod
    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        """As call, but raise a transient error instead of waiting for a lock.

        The lock timeout is 0 to 1 second, and may stay in effect for later calls on the
        connection, which must be rowq's own and in autocommit.
        """

    @abstractmethod
    async def call_async(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        """As call, on an asynchronous connection."""

    def dequeue_wait(self, connection: Any, arguments: Mapping[str, Any]) -> list[Row]:
        """Call dequeue_wait on a connection of rowq's own, in autocommit."""
        return self.call(connection, "dequeue_wait", arguments)

    async def dequeue_wait_async(self, connection: Any, arguments: Mapping[str, Any]) -> list[Row]:
        """As dequeue_wait, on an asynchronous connection."""
        return await self.call_async(connection, "dequeue_wait", arguments)

    @abstractmethod
    def close(self, connection: Any) -> None:
        """Close a connection; ignore the errors of a lost connection."""

    @abstractmethod
    async def close_async(self, connection: Any) -> None:
        """As close, on an asynchronous connection."""

    @abstractmethod
    def is_async(self, connection: Any) -> bool:
        """Whether the connection is asynchronous."""

    @abstractmethod
    def is_usable(self, connection: Any) -> bool:
        """Whether an idle connection is still up, as far as the client can see without a call."""

    def is_idle(self, connection: Any) -> bool:
        """Whether a connection of rowq's own is usable, and in no call and no transaction."""
        return self.is_usable(connection)

    def break_off(self, connection: Any) -> None:
        """Close a connection during a call, and cancel the call if that is cheap."""
        self.close(connection)

    async def break_off_async(self, connection: Any) -> None:
        """As break_off, on an asynchronous connection."""
        await self.close_async(connection)

    @abstractmethod
    def in_transaction(self, connection: Any) -> bool:
        """Whether a call now would be inside a transaction that the caller must end."""

    @abstractmethod
    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        """Commit on exit, roll back on an exception; inside a transaction use a savepoint."""

    def savepoint(self, connection: Any) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context that undoes a failed call, so that an open transaction stays usable.

        It does nothing outside a transaction, or if the engine's routines do this themselves.
        """
        return nullcontext()

    def savepoint_async(
        self,
        connection: Any,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[None]:
        """As savepoint, on an asynchronous connection."""
        return nullcontext()

    @abstractmethod
    def watch(self, connection: Any, target: str) -> None:
        """Warn if a caller's connection is closed before its current transaction is committed.

        The transaction enqueued to `target`. Does nothing if the driver gives no way to detect it.
        """

    @abstractmethod
    def refusal(self, error: Exception) -> Refused | None:
        """Return the refusal in a driver's error, or None."""

    @abstractmethod
    def is_denied(self, error: Exception) -> bool:
        """Whether the account may not call the routine."""

    @abstractmethod
    def grant(self, connection: Any, role: str, error: Exception) -> str:
        """Return how to grant a role to the account, with the statement in quotation marks.

        error: the server's denial; it may name the account.
        """

    @abstractmethod
    def is_connection_lost(self, error: Exception) -> bool:
        """Whether the connection is lost, or could not be opened."""

    def was_sent(self, error: Exception) -> bool:  # noqa: ARG002 - for overriding methods
        """Whether the call that lost the connection may have taken effect.

        False only if the driver reports that it had not begun to send the call.
        """
        return True

    @abstractmethod
    def is_wrong_server(self, error: Exception) -> bool:
        """Whether the server is read-only, such as a replica; the call changed nothing."""

    @abstractmethod
    def is_rolled_back(self, error: Exception) -> bool:
        """Whether the server rolled the call back because of other sessions, as in a deadlock.

        Such a call can be repeated. In a transaction, roll back and repeat the whole transaction.
        """

    @abstractmethod
    def is_shortage(self, error: Exception) -> bool:
        """Whether the server temporarily lacks a resource: a lock, space, a session and so on."""

    def is_transient(self, error: Exception) -> bool:
        """Whether the same call may soon succeed: any of the cases above."""
        return (
            self.is_connection_lost(error)
            or self.is_wrong_server(error)
            or self.is_rolled_back(error)
            or self.is_shortage(error)
        )


class ListeningEngine(Engine):
    """An engine that notifies connections of messages: it has the routines listen and unlisten."""

    @abstractmethod
    def is_direct(self, connection: Any) -> bool:
        """Whether the connection has its own server session, without a pooler."""

    @abstractmethod
    async def is_direct_async(self, connection: Any) -> bool:
        """As is_direct, on an asynchronous connection."""


class SynchronousEngine(Engine):
    """An engine without asynchronous connections."""

    product: ClassVar[str]
    """Name of the engine in errors."""

    async def connect_async(self, url: str) -> Any:  # noqa: ARG002
        """Raise EngineUnknown."""
        self._refuse()

    async def call_async(
        self,
        connection: Any,  # noqa: ARG002
        routine: str,  # noqa: ARG002
        arguments: Mapping[str, Any],  # noqa: ARG002
    ) -> list[Row]:
        """Raise EngineUnknown."""
        self._refuse()

    async def close_async(self, connection: Any) -> None:
        """As close."""
        self.close(connection)

    def is_async(self, connection: Any) -> bool:  # noqa: ARG002
        """Whether the connection is asynchronous."""
        return False

    def _refuse(self) -> NoReturn:
        raise EngineUnknown(f"AsyncQueue does not support {self.product}; use rowq.connect")
