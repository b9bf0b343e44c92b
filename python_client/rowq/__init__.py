"""rowq: a message queue that lives in your SQL database.

>>> queue = rowq.connect("postgresql://...")  # or rowq.Queue(connection) on your own connection
>>> queue.enqueue("orders", {"id": 1})
>>> for message in queue.dequeue_fast("orders", batch_size=10):
...     print(message.data)
...     queue.complete("orders", message.claim_id, [message.message_id])
"""

from rowq.async_queue import AsyncQueue, connect_async
from rowq.errors import (
    CannotConnect,
    ConnectionLost,
    DriverMissing,
    EngineUnknown,
    ForbiddenInHandler,
    InvalidArgument,
    QueueBusy,
    QueueClosed,
    QueueNotEmpty,
    QueueNotFound,
    Refused,
    RowqError,
    ScheduleNotFound,
    StaleClaim,
    WorkerFailed,
    WrongTransactionState,
)
from rowq.headers import UnreadableHeaders
from rowq.messages import (
    Archived,
    BatchEnqueued,
    DeadMessage,
    DroppedSchedule,
    Enqueued,
    HealthCheck,
    InstalledVersion,
    Lease,
    Maintained,
    Message,
    MessageDetails,
    NewMessage,
    Outcome,
    PeekedMessage,
    Promoted,
    PurgedArchive,
    PurgedQueue,
    QueueOutcome,
    QueueStats,
    Reaped,
    RetryOutcome,
    Schedule,
    ScheduleOutcome,
)
from rowq.queue import Queue, connect
from rowq.worker import Fail, HeldMessage, Retry, Worker, WorkerStats

__version__ = "0.1.0"

__all__ = [
    "Archived",
    "AsyncQueue",
    "BatchEnqueued",
    "CannotConnect",
    "ConnectionLost",
    "DeadMessage",
    "DriverMissing",
    "DroppedSchedule",
    "EngineUnknown",
    "Enqueued",
    "Fail",
    "ForbiddenInHandler",
    "HealthCheck",
    "HeldMessage",
    "InstalledVersion",
    "InvalidArgument",
    "Lease",
    "Maintained",
    "Message",
    "MessageDetails",
    "NewMessage",
    "Outcome",
    "PeekedMessage",
    "Promoted",
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
    "Refused",
    "Retry",
    "RetryOutcome",
    "RowqError",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleOutcome",
    "StaleClaim",
    "UnreadableHeaders",
    "Worker",
    "WorkerFailed",
    "WorkerStats",
    "WrongTransactionState",
    "__version__",
    "connect",
    "connect_async",
]
