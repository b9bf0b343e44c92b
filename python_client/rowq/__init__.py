"""rowq: a message queue that lives in your SQL database.

>>> queue = rowq.connect("postgresql://...")  # or rowq.Queue(connection) on your own connection
>>> queue.enqueue("orders", {"id": 1})
>>> for message in queue.dequeue_fast("orders", batch_size=10):
...     print(message.data)
...     queue.complete("orders", message.claim_id, [message.message_id])
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from rowq.async_queue import AsyncQueue, connect_async
from rowq.engines.uncommitted import UncommittedWarning
from rowq.errors import (
    CannotConnect,
    ConnectionLost,
    DriverMissing,
    EngineUnknown,
    ForbiddenInHandler,
    HandlerTimedOut,
    InvalidArgument,
    PackageMissing,
    QueueBusy,
    QueueClosed,
    QueueNotEmpty,
    QueueNotFound,
    Refused,
    RowqError,
    ScheduleNotFound,
    StaleClaim,
    UnreadableBody,
    WorkerFailed,
    WrongNode,
    WrongTransactionState,
)
from rowq.messages import (
    AdvancedNumber,
    Archived,
    Attempt,
    BatchEnqueued,
    BatchPublished,
    Cancelled,
    Claim,
    DeadMessage,
    DelayedMessage,
    Discarded,
    DroppedSchedule,
    Enqueued,
    HealthCheck,
    InstalledVersion,
    Lease,
    Maintained,
    Message,
    MessageDetails,
    MessageResult,
    NewMessage,
    NextMessages,
    Outcome,
    PeekedMessage,
    Promoted,
    Published,
    PurgedArchive,
    PurgedQueue,
    QueueOutcome,
    QueueStats,
    Reaped,
    Reason,
    RetryOutcome,
    Schedule,
    ScheduleOutcome,
    TopicBinding,
    TopicOutcome,
    UnreadableHeaders,
    WorkerReport,
)
from rowq.queue import Queue, connect

if TYPE_CHECKING:
    from rowq.contrib.async_striped import AsyncStriped, connect_striped_async
    from rowq.contrib.opentelemetry import instrument, uninstrument
    from rowq.contrib.striped import Striped, connect_striped
    from rowq.worker import Fail, HeldMessage, Retry, Snooze, Worker, WorkerStats
    from rowq.worker.stripes import (
        ServerCheck,
        Stripe,
        StripeClaim,
        StripedEnqueued,
        StripedMessage,
        StripeStats,
    )

__version__ = "0.1.0"

__all__ = [
    "AdvancedNumber",
    "Archived",
    "AsyncQueue",
    "AsyncStriped",
    "Attempt",
    "BatchEnqueued",
    "BatchPublished",
    "Cancelled",
    "CannotConnect",
    "Claim",
    "ConnectionLost",
    "DeadMessage",
    "DelayedMessage",
    "Discarded",
    "DriverMissing",
    "DroppedSchedule",
    "EngineUnknown",
    "Enqueued",
    "Fail",
    "ForbiddenInHandler",
    "HandlerTimedOut",
    "HealthCheck",
    "HeldMessage",
    "InstalledVersion",
    "InvalidArgument",
    "Lease",
    "Maintained",
    "Message",
    "MessageDetails",
    "MessageResult",
    "NewMessage",
    "NextMessages",
    "Outcome",
    "PackageMissing",
    "PeekedMessage",
    "Promoted",
    "Published",
    "PurgedArchive",
    "PurgedQueue",
    "Queue",
    "QueueBusy",
    "QueueClosed",
    "QueueNotEmpty",
    "QueueNotFound",
    "QueueOutcome",
    "QueueStats",
    "Reaped",
    "Reason",
    "Refused",
    "Retry",
    "RetryOutcome",
    "RowqError",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleOutcome",
    "ServerCheck",
    "Snooze",
    "StaleClaim",
    "Stripe",
    "StripeClaim",
    "StripeStats",
    "Striped",
    "StripedEnqueued",
    "StripedMessage",
    "TopicBinding",
    "TopicOutcome",
    "UncommittedWarning",
    "UnreadableBody",
    "UnreadableHeaders",
    "Worker",
    "WorkerFailed",
    "WorkerReport",
    "WorkerStats",
    "WrongNode",
    "WrongTransactionState",
    "__version__",
    "connect",
    "connect_async",
    "connect_striped",
    "connect_striped_async",
    "instrument",
    "uninstrument",
]

_LAZY = {
    "rowq.contrib.async_striped": ("AsyncStriped", "connect_striped_async"),
    "rowq.contrib.opentelemetry": ("instrument", "uninstrument"),
    "rowq.contrib.striped": ("Striped", "connect_striped"),
    "rowq.worker": ("Fail", "HeldMessage", "Retry", "Snooze", "Worker", "WorkerStats"),
    "rowq.worker.stripes": (
        "ServerCheck",
        "Stripe",
        "StripeClaim",
        "StripeStats",
        "StripedEnqueued",
        "StripedMessage",
    ),
}
"""Names that are imported from these modules at first use."""
_TRACES_SWITCH = "OTEL_INSTRUMENTATION_ROWQ"


if not TYPE_CHECKING:  # A type checker sees the imports above.

    def __getattr__(name: str) -> Any:
        for module, names in _LAZY.items():
            if name in names:
                value = getattr(importlib.import_module(module), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if os.environ.get(_TRACES_SWITCH, "").lower() in {"1", "true"}:
    importlib.import_module("rowq.contrib.opentelemetry").follow_environment(_TRACES_SWITCH)
