"""The exceptions of rowq; other errors of a driver pass through unchanged.

RowqError
├── Refused                      a routine refused the call and changed nothing; it has a number
│   ├── QueueNotFound            RQ701
│   ├── ScheduleNotFound         RQ702
│   ├── QueueNotEmpty            RQ704
│   ├── QueueBusy                RQ705, retryable
│   ├── WrongNode                RQ706, retryable; only if queues are on several nodes
│   ├── InvalidArgument          RQ711, also raised by the client before a call
│   ├── WrongTransactionState    RQ713, also raised by the client before a call
│   └── StaleClaim               RQ721
├── CannotConnect                the first connection failed
├── ConnectionLost               the connection was lost and the call could not be repeated
├── QueueClosed                  the queue object is closed; nothing was sent
├── UnreadableBody               Python cannot read the JSON of a body; also a ValueError
├── ForbiddenInHandler           a handler tried to end its worker's transaction or claim
├── EngineUnknown                no engine for this URL or connection
├── DriverMissing                the engine's driver is not installed
├── PackageMissing               a package of one of rowq's extras is not installed
└── WorkerFailed                 a worker cannot continue

HandlerTimedOut is a BaseException, so that `except Exception` in a handler does not hide it.
"""

# ruff: noqa: N818 - the contract's names do not end in Error

from typing import ClassVar


class RowqError(Exception):
    """Base class of rowq's exceptions."""

    retryable: ClassVar[bool] = False


class Refused(RowqError):
    """A routine refused the call and changed nothing. Retry only if `retryable` is true."""

    number: ClassVar[str]
    name: ClassVar[str]

    def __init__(self, text: str) -> None:
        """Put number and name before `text`, unless it has them."""
        prefix = f"{self.number} {self.name}"
        super().__init__(text if text.startswith(prefix) else f"{prefix}: {text}")


class QueueNotFound(Refused):
    """The queue does not exist. Names are case-sensitive; create it with create_queue."""

    number = "RQ701"
    name = "queue_not_found"


class ScheduleNotFound(Refused):
    """The schedule does not exist. Names are case-sensitive; create it with create_schedule."""

    number = "RQ702"
    name = "schedule_not_found"


class QueueNotEmpty(Refused):
    """The queue has messages or an archive, and drop_queue was called without force."""

    number = "RQ704"
    name = "queue_not_empty"


class QueueBusy(Refused):
    """Open transactions use the queue and did not end in time; retry."""

    number = "RQ705"
    name = "queue_busy"
    retryable = True


class WrongNode(Refused):
    """The call did not reach the queue's node, or not every node; retry."""

    number = "RQ706"
    name = "wrong_node"
    retryable = True


class InvalidArgument(Refused):
    """An argument is missing, malformed or out of range."""

    number = "RQ711"
    name = "invalid_argument"


class WrongTransactionState(Refused):
    """The routine commits and was called in a transaction, or the isolation level is too strict."""

    number = "RQ713"
    name = "wrong_transaction_state"


class StaleClaim(Refused):
    """The claim is gone: finished, released, or its lease expired and was reaped."""

    number = "RQ721"
    name = "stale_claim"


class CannotConnect(RowqError):
    """The database is unreachable, or refused the login."""


class ConnectionLost(RowqError):
    """The connection was lost during a call.

    is_unknown: the call may have taken effect. Otherwise it has not, or may be repeated.
    """

    def __init__(self, text: str = "", *, is_unknown: bool = False) -> None:
        """Set the text, and whether the call may have taken effect."""
        super().__init__(text)
        self.is_unknown = is_unknown


class QueueClosed(RowqError):
    """The queue object is closed; nothing was sent. A running call raises it too."""


class UnreadableBody(RowqError, ValueError):
    """Python cannot read the JSON of a body: nested too deeply, or an integer too long.

    No attempt can read it, so the worker makes the message dead if the handler does not catch this.
    """

    def __init__(self, message_id: int, reason: str) -> None:
        """Set the message, and why its body cannot be read."""
        super().__init__(message_id, reason)
        self.message_id = message_id
        self.reason = reason

    def __str__(self) -> str:
        return f"the body of message {self.message_id} cannot be read: {self.reason}"


class ForbiddenInHandler(RowqError):
    """A handler must not end its worker's transaction, nor finish or extend its claim in it.

    Usually the statement is refused before it is sent. If the transaction has ended anyway, for
    example in a procedure that commits, the connection refuses all further statements of the
    handler.
    """


class EngineUnknown(RowqError):
    """rowq supports no such URL or connection."""


class DriverMissing(RowqError):
    """The engine's Python driver is not installed; see the message for the command."""


class PackageMissing(RowqError):
    """A package of one of rowq's extras is not installed; see the message for the command."""


class WorkerFailed(RowqError):
    """The worker cannot continue; see the message."""


class HandlerTimedOut(BaseException):
    """The handler has taken longer than its worker's timeout_seconds."""


REFUSALS: dict[str, type[Refused]] = {
    refusal.number: refusal
    for refusal in (
        QueueNotFound,
        ScheduleNotFound,
        QueueNotEmpty,
        QueueBusy,
        WrongNode,
        InvalidArgument,
        WrongTransactionState,
        StaleClaim,
    )
}


def refusal_from_text(text: str) -> Refused | None:
    """Return the refusal whose number `text` begins with, or None."""
    refusal = REFUSALS.get(text[:5])
    return refusal(text) if refusal else None
