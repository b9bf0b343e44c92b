"""Everything rowq raises itself; a driver's error that rowq does not know passes through untouched.

RowqError
├── Refused                      a routine said no and changed nothing; it has a number
│   ├── QueueNotFound            RQ701
│   ├── ScheduleNotFound         RQ702
│   ├── QueueNotEmpty            RQ704
│   ├── QueueBusy                RQ705, retryable
│   ├── WrongNode                RQ706, retryable; where queues are on several nodes
│   ├── InvalidArgument          RQ711, also raised by the client before it calls
│   ├── WrongTransactionState    RQ713, also raised by the client before it calls
│   └── StaleClaim               RQ721
├── CannotConnect                no connection at the first try
├── ConnectionLost               the connection broke and the call could not be repeated
├── QueueClosed                  the queue object was closed; nothing was sent
├── UnreadableBody               Python cannot read the JSON of a body; also a ValueError
├── ForbiddenInHandler           a transactional worker's handler tried what is the worker's to do
├── EngineUnknown                no engine for this URL or connection
├── DriverMissing                the engine's driver is not installed
├── PackageMissing               a package of one of rowq's extras is not installed
└── WorkerFailed                 a worker stopped because going on made no sense

HandlerTimedOut is a BaseException: `except Exception` in a handler does not hide it.
"""

# ruff: noqa: N818 - the contract names its errors by what happened

from typing import ClassVar


class RowqError(Exception):
    """Base of everything that rowq raises."""

    retryable: ClassVar[bool] = False


class Refused(RowqError):
    """A routine refused; `number` and `name` are the contract's, `retryable` says what to do."""

    number: ClassVar[str]
    name: ClassVar[str]

    def __init__(self, text: str) -> None:
        """Keep `text`, and see to it that it begins with number and name as the routines' do."""
        opening = f"{self.number} {self.name}"
        super().__init__(text if text.startswith(opening) else f"{opening}: {text}")


class QueueNotFound(Refused):
    """No queue has this name. Names are case-sensitive; create_queue makes one."""

    number = "RQ701"
    name = "queue_not_found"


class ScheduleNotFound(Refused):
    """The queue has no schedule of this name; case matters. create_schedule makes one."""

    number = "RQ702"
    name = "schedule_not_found"


class QueueNotEmpty(Refused):
    """drop_queue without force found messages."""

    number = "RQ704"
    name = "queue_not_empty"


class QueueBusy(Refused):
    """Open transactions did not end in time; try again."""

    number = "RQ705"
    name = "queue_busy"
    retryable = True


class WrongNode(Refused):
    """A call has not reached the node that has the queue, or not every node; try again."""

    number = "RQ706"
    name = "wrong_node"
    retryable = True


class InvalidArgument(Refused):
    """An argument is missing, malformed or out of range; nothing was changed."""

    number = "RQ711"
    name = "invalid_argument"


class WrongTransactionState(Refused):
    """The routine must commit and is in a transaction, or this one's isolation is too strict."""

    number = "RQ713"
    name = "wrong_transaction_state"


class StaleClaim(Refused):
    """The claim is gone: finished, released, or its lease ran out and others have the messages."""

    number = "RQ721"
    name = "stale_claim"


class CannotConnect(RowqError):
    """The database could not be reached, or did not let us in."""


class ConnectionLost(RowqError):
    """The connection broke; the text says whether the call's effect is known.

    is_unknown: whether the call may have taken effect; else it has not, or may be repeated.
    """

    def __init__(self, text: str = "", *, is_unknown: bool = False) -> None:
        """Keep `text`, and whether the call may have taken effect."""
        super().__init__(text)
        self.is_unknown = is_unknown


class QueueClosed(RowqError):
    """A call on a queue that was closed: nothing was sent. A call under way ends with it, too."""


class UnreadableBody(RowqError, ValueError):
    """A body is JSON that Python does not read: nested too deeply, or an integer too long.

    The worker declares such a message dead when the handler lets this pass, as no attempt can read
    it. message_id: whose body it is.
    """

    def __init__(self, message_id: int, reason: str) -> None:
        """Name the message, and why its body cannot be read."""
        super().__init__(message_id, reason)
        self.message_id = message_id
        self.reason = reason

    def __str__(self) -> str:
        return f"the body of message {self.message_id} cannot be read: {self.reason}"


class ForbiddenInHandler(RowqError):
    """A handler may not end its worker's transaction, nor finish or extend its own claim in it.

    Where the driver lets us, what would end the transaction is refused before it is sent, and
    nothing has changed. Where something has ended it all the same, a procedure that commits say,
    the connection takes nothing more from this handler.
    """


class EngineUnknown(RowqError):
    """No engine of rowq serves this URL or this kind of connection."""


class DriverMissing(RowqError):
    """The engine's Python driver is not installed; the text says how to install it."""


class PackageMissing(RowqError):
    """A package of one of rowq's extras is not installed; the text says how to install it."""


class WorkerFailed(RowqError):
    """A worker stopped because going on made no sense; the text says why."""


class HandlerTimedOut(BaseException):
    """Raised in a handler that has taken longer than its worker's timeout_seconds."""


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
    """Return the refusal whose number `text` begins with, or None when it begins with none."""
    refusal = REFUSALS.get(text[:5])
    return refusal(text) if refusal else None
