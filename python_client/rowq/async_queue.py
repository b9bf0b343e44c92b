"""AsyncQueue: one method per routine, with the routine's name and parameters.

queue.py is made from this file by make generate.

A method makes one call; dequeue_wait and wait_for_result make one every 5 seconds.
sql/CONTRACT.md describes parameters and columns. Priority 0 is delivered first. None means the
queue's setting, or no value. Every method raises InvalidArgument for a value out of range and
QueueNotFound for an unknown queue; other errors are named at their methods.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from rowq import tracing
from rowq.arguments import Default
from rowq.async_session import AsyncBorrowedSession, AsyncOwnedSession, AsyncSession
from rowq.awaitable import may_be_entered
from rowq.bodies import (
    batch_entries,
    has_ended,
    message_arguments,
    message_from_json,
    plain_results,
    result_from_json,
)
from rowq.engines.base import Row
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
    WorkerReport,
)
from rowq.options import (
    MessageChanges,
    MessageOptions,
    PublishOptions,
    QueueSettings,
    ScheduleChanges,
    ScheduleSettings,
    takes,
    with_defaults,
)

if TYPE_CHECKING:
    from rowq.tracing import Traces


@may_be_entered
async def connect_async(
    url: str, *, reconnect_seconds: float = 60.0, default: Default | None = None
) -> "AsyncQueue":
    """Return an AsyncQueue with its own connection, in autocommit.

    If the connection is lost, or its server becomes read-only, the queue reconnects with backoff
    for up to `reconnect_seconds` from the first failure. It repeats the call if that is safe, and
    otherwise raises ConnectionLost. Raises CannotConnect if the first connection fails.
    Tasks that share it take turns. `default` is that of AsyncQueue.
    """
    session = AsyncOwnedSession(url, reconnect_seconds=reconnect_seconds)
    await session.open()
    return AsyncQueue(session, default=default)


class AsyncQueue:
    """The routines of rowq as methods.

    On the caller's own connection it never connects, commits, retries or closes: a message exists
    if and only if the caller's transaction commits.
    """

    def __init__(
        self, connection: Any, *, savepoint: bool = False, default: Default | None = None
    ) -> None:
        """Use the caller's connection, or a session of rowq.

        Args:
            connection: a connection of the engine's driver (with asyncio also of asyncpg), or a
                SQLAlchemy or Django object around one.
            savepoint: set a savepoint before each call in an open transaction, and roll back to it
                if the call raises, so that the transaction stays usable. It costs two round trips
                per call on PostgreSQL. The other engines' routines do this without it.
            default: converts a value that is not JSON serializable, as in json.dumps; `str` works
                for Decimal, datetime and UUID.

        Raises:
            EngineUnknown: no supported driver made the connection.
        """
        own = isinstance(connection, AsyncSession)
        self._session: AsyncSession = (
            connection if own else AsyncBorrowedSession(connection, savepoint=savepoint)
        )
        self._default = default

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the queue's own connection; the caller's connection stays open.

        Later calls raise QueueClosed. A running call in another task ends first.
        """
        await self._session.end()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Suggest the methods that replace a missing one."""
            hint = ": dequeue_fast returns at once, dequeue_wait waits" if name == "dequeue" else ""
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{hint}")

    # admin

    @takes(QueueSettings)
    async def create_queue(
        self, queue_name: str, **settings: Unpack[QueueSettings]
    ) -> QueueOutcome:
        """Create a queue, or return "exists" without changing an existing one.

        get_result returns outcomes for `result_seconds`, get_history attempts for `history_days`;
        0 keeps none.
        """
        whole = with_defaults(QueueSettings, settings, "create_queue")
        return QueueOutcome(*await self._row("create_queue", queue_name=queue_name, **whole))

    @takes(QueueSettings)
    async def alter_queue(self, queue_name: str, **settings: Unpack[QueueSettings]) -> QueueOutcome:
        """Change settings of a queue; None leaves a setting unchanged, 0 removes a limit."""
        whole = with_defaults(QueueSettings, settings, "alter_queue")
        return QueueOutcome(*await self._row("alter_queue", queue_name=queue_name, **whole))

    async def drop_queue(self, queue_name: str, *, force: bool = False) -> QueueOutcome:
        """Drop an empty queue, or with `force` any queue with its messages and archive.

        Raises QueueNotEmpty without force, QueueBusy if open transactions do not end in time.
        """
        return QueueOutcome(*await self._row("drop_queue", queue_name=queue_name, force=force))

    async def pause_queue(self, queue_name: str) -> QueueOutcome:
        """Stop delivery; enqueueing and finishing continue."""
        return QueueOutcome(*await self._row("pause_queue", queue_name=queue_name))

    async def resume_queue(self, queue_name: str) -> QueueOutcome:
        """Resume delivery."""
        return QueueOutcome(*await self._row("resume_queue", queue_name=queue_name))

    async def bind_topic(self, queue_name: str, topic_pattern: str) -> TopicOutcome:
        """Bind a queue to the topics that match a pattern.

        In a pattern, "*" matches exactly one word, and "#" as the last word any number of words.
        Outcomes: "bound", "exists".
        """
        row = await self._row("bind_topic", queue_name=queue_name, topic_pattern=topic_pattern)
        return TopicOutcome(*row)

    async def unbind_topic(self, queue_name: str, topic_pattern: str) -> TopicOutcome:
        """Remove a queue's pattern; its messages stay. Outcomes: "unbound", "not_bound"."""
        row = await self._row("unbind_topic", queue_name=queue_name, topic_pattern=topic_pattern)
        return TopicOutcome(*row)

    async def purge_queue(
        self, queue_name: str, *, include_dead: bool = False, max_messages: int | None = None
    ) -> PurgedQueue:
        """Delete ready, delayed and blocked messages; leased messages stay.

        On MariaDB and MySQL raises QueueBusy as `cancel` does.
        """
        row = await self._row(
            "purge_queue",
            queue_name=queue_name,
            include_dead=include_dead,
            max_messages=max_messages,
        )
        return PurgedQueue(*row)

    # produce

    @takes(MessageOptions)
    async def enqueue(
        self,
        queue_name: str,
        data: Any = None,
        *,
        text: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> Enqueued:
        """Enqueue a message and return its id.

        `data` is any JSON value, or bytes; the queue's `default` converts other values. `text` is
        sent unchanged. If an unfinished message has the same `dedup_key`, the outcome is
        "duplicate" and the id is that message's. Messages with the same `group_key` are delivered
        in order, one at a time. A message with `predecessor_ids` waits until those have ended;
        `on_predecessor_dead` is "hold" (default), "continue" or "fail". maintain expires a message
        `expire_seconds` (0.001 to 315360000) after it was enqueued, unless a worker holds it.
        An option that the engine lacks raises InvalidArgument.
        """
        whole = with_defaults(MessageOptions, options, "enqueue")
        message = message_arguments(data, text, whole, self._default)
        row = await self._row("enqueue", queue_name=queue_name, **message)
        return Enqueued(*row)

    async def enqueue_batch(
        self, queue_name: str, messages: Iterable[NewMessage | Any]
    ) -> list[BatchEnqueued]:
        """Enqueue up to 10000 messages in one call: all of them or, on an error, none.

        Each is a NewMessage, or a value like the `data` of enqueue: JSON or bytes, not None.
        """
        entries = batch_entries(messages, self._default)
        rows = await self._rows("enqueue_batch", queue_name=queue_name, messages=entries)
        return [BatchEnqueued(*row) for row in rows]

    @takes(PublishOptions)
    async def publish(
        self,
        topic: str,
        data: Any = None,
        *,
        text: str | None = None,
        **options: Unpack[PublishOptions],
    ) -> list[Published]:
        """Enqueue a message in each queue that is bound to `topic`.

        A topic is words of letters, digits, "_" and "-", separated by dots: up to 200 characters.
        `message_type` defaults to the topic. The result is ordered by queue name, and empty if no
        queue is bound. `dedup_key` and `group_key` apply within each queue. A queue that is
        dropped during the call is skipped.
        """
        whole = with_defaults(PublishOptions, options, "publish")
        message = message_arguments(data, text, whole, self._default)
        rows = await self._rows("publish", topic=topic, **message)
        return [Published(*row) for row in rows]

    async def publish_batch(self, messages: Iterable[NewMessage]) -> list[BatchPublished]:
        """Publish up to 10000 messages, each with its `topic`: all or, on an error, none.

        The result is ordered by queue name.
        """
        entries = batch_entries(messages, self._default)
        rows = await self._rows("publish_batch", messages=entries)
        return [BatchPublished(*row) for row in rows]

    # consume

    async def dequeue_fast(
        self,
        queue_name: str,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
    ) -> list[Message]:
        """Lease up to `batch_size` ready messages; skip rows that another session has locked."""
        arguments = dequeue_arguments(queue_name, batch_size, worker_name, lease_seconds)
        traces = tracing.active
        called_at = time.monotonic() if traces else 0.0
        rows = await self._session.call("dequeue_fast", arguments)
        messages = [Message(*row) for row in rows]
        if traces:
            traces.record_received(queue_name, messages, called_at)
        return messages

    async def complete_and_dequeue(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: Sequence[int] | None = None,
        *,
        results: Sequence[Any] | None = None,
        batch_size: int = 1,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
    ) -> NextMessages:
        """Complete messages as complete does and dequeue the next ones, in one call and one commit.

        A stale claim raises no error: see NextMessages. A refused call completes nothing.
        """
        arguments = dequeue_arguments(queue_name, batch_size, worker_name, lease_seconds)
        arguments |= {
            "claim_id": claim_id,
            "message_ids": message_ids,
            "results": plain_results(results, self._default),
        }
        traces = tracing.active
        called_at = time.monotonic() if traces else 0.0
        rows = await self._session.call("complete_and_dequeue", arguments)
        messages = [Message(*row[1:]) for row in rows if row[0] == "leased"]
        stale_ids = [row[2] for row in rows if row[0] == "stale"]
        if traces:
            traces.record_received(queue_name, messages, called_at)
        return NextMessages(
            messages, bool(stale_ids), [found for found in stale_ids if found is not None]
        )

    async def dequeue_wait(
        self,
        queue_name: str,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
        wait_seconds: float = 20,
    ) -> list[Message]:
        """Dequeue messages, and wait if there are none; return an empty list after the wait.

        On PostgreSQL rowq's own connection listens during the wait, and a commit ends it at once.
        Each call waits up to 5 seconds, because the server does not notice a client that is gone.
        Other users of the queue object make their calls in between. Raises WrongTransactionState
        unless the connection is in autocommit, outside a transaction.
        """
        arguments = dequeue_arguments(queue_name, batch_size, worker_name, lease_seconds)
        traces = tracing.active
        called_at = time.monotonic() if traces else 0.0
        row, *_ = await self._session.wait("dequeue_wait", arguments, wait_seconds, bool)
        messages = [message_from_json(entry) for entry in row[0] or ()]
        if traces:
            traces.record_received(queue_name, messages, called_at)
        return messages

    async def peek(self, queue_name: str, *, max_messages: int = 1) -> list[PeekedMessage]:
        """Return the next ready messages without leasing them."""
        rows = await self._rows("peek", queue_name=queue_name, max_messages=max_messages)
        return [PeekedMessage(*row) for row in rows]

    # finish: without message_ids, a method finishes every message that the claim still holds. It
    # raises StaleClaim if the claim is gone.

    async def complete(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: Sequence[int] | None = None,
        *,
        results: Sequence[Any] | None = None,
    ) -> list[Outcome]:
        """Complete messages: never deliver them again. Outcomes: "completed", "stale".

        `results` has one JSON value per message for get_result and wait_for_result; None is no
        result. Without `message_ids` the claim must hold exactly one message. Raises
        InvalidArgument if the queue has no result_seconds.
        """
        rows = await self._rows(
            "complete",
            queue_name=queue_name,
            claim_id=claim_id,
            message_ids=message_ids,
            results=plain_results(results, self._default),
        )
        return [Outcome(*row) for row in rows]

    async def retry_later(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: Sequence[int] | None = None,
        *,
        delay_seconds: float | None = None,
        error: str | None = None,
    ) -> list[RetryOutcome]:
        """Retry messages after `delay_seconds`, or after the queue's backoff.

        Outcomes: "retrying", "dead" if no attempt is left, "cancelled", "stale".
        """
        rows = await self._rows(
            "retry_later",
            queue_name=queue_name,
            claim_id=claim_id,
            message_ids=message_ids,
            delay_seconds=delay_seconds,
            error=error,
        )
        return [RetryOutcome(*row) for row in rows]

    async def fail_now(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: Sequence[int] | None = None,
        *,
        error: str | None = None,
    ) -> list[Outcome]:
        """Make messages dead without another attempt. Outcomes: "dead", "cancelled", "stale"."""
        rows = await self._rows(
            "fail_now",
            queue_name=queue_name,
            claim_id=claim_id,
            message_ids=message_ids,
            error=error,
        )
        return [Outcome(*row) for row in rows]

    async def release(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: Sequence[int] | None = None,
        *,
        delay_seconds: float | None = None,
    ) -> list[RetryOutcome]:
        """Return messages to the front of their priority; the attempt does not count.

        With `delay_seconds` they are delivered after that time, at the tail of their priority.
        Outcomes: "released", or "snoozed" with a delay, "cancelled", "stale".
        """
        rows = await self._rows(
            "release",
            queue_name=queue_name,
            claim_id=claim_id,
            message_ids=message_ids,
            delay_seconds=delay_seconds,
        )
        return [RetryOutcome(*row) for row in rows]

    async def extend_lease(
        self,
        queue_name: str,
        claim_id: int,
        *,
        lease_seconds: int | None = None,
        progress: str | None = None,
    ) -> Lease:
        """Extend the lease of a claim to `lease_seconds` from now; never shorten it.

        `progress` is free text for get_message; None leaves it unchanged. The result's cancel_ids
        are the messages whose cancellation was requested. Raises StaleClaim if the claim is gone.
        """
        row = await self._row(
            "extend_lease",
            queue_name=queue_name,
            claim_id=claim_id,
            lease_seconds=lease_seconds,
            progress=progress,
        )
        return Lease(*row)

    async def cancel(
        self, queue_name: str, message_ids: Sequence[int], *, include_leased: bool = False
    ) -> list[Outcome]:
        """Cancel messages, including dead ones.

        With `include_leased`, also request the cancellation of leased messages: the worker gets the
        request at its next heartbeat, and the message ends as cancelled unless the worker completes
        it. Outcomes: "cancelled", "requested", "leased" (not requested; with `include_leased`
        another session has locked the claim: retry), "not_found". On MariaDB and MySQL raises
        QueueBusy if an open transaction that has locked a message does not end in time.
        """
        rows = await self._rows(
            "cancel",
            queue_name=queue_name,
            message_ids=message_ids,
            include_leased=include_leased or None,
        )
        return [Outcome(*row) for row in rows]

    async def cancel_many(
        self,
        queue_name: str,
        *,
        message_type: str | None = None,
        group_key: str | None = None,
        header_name: str | None = None,
        header_value: str | None = None,
        enqueued_before: datetime | None = None,
        after_message_id: int = 0,
        max_messages: int = 1000,
    ) -> Cancelled:
        """Cancel messages, including dead ones, that match all filters and are not leased.

        At least one filter is required. A call scans up to `max_messages` messages in id order,
        after `after_message_id`: repeat with the returned value until it is None. `header_name` is
        a top-level header, `header_value` its string, or its integer, true or false as in JSON. On
        MariaDB and MySQL raises QueueBusy as `cancel` does.
        """
        row = await self._row(
            "cancel_many",
            queue_name=queue_name,
            message_type=message_type,
            group_key=group_key,
            header_name=header_name,
            header_value=header_value,
            enqueued_before=enqueued_before,
            after_message_id=after_message_id,
            max_messages=max_messages,
        )
        return Cancelled(*row)

    @takes(MessageChanges)
    async def alter_message(
        self,
        queue_name: str,
        message_id: int,
        data: Any = None,
        *,
        text: str | None = None,
        **changes: Unpack[MessageChanges],
    ) -> RetryOutcome:
        """Change a waiting or dead message; None leaves a value unchanged.

        `data` or `text` replaces the body, `headers` all headers. `delay_seconds=0` makes a delayed
        message due now. `expire_seconds` counts from now; 0 removes the expiry. Outcomes:
        "altered", "leased" (a worker holds it, or another session is moving it: retry), "dead" (a
        time was given for a dead message: reset it), "not_found". On MariaDB and MySQL raises
        QueueBusy as `cancel` does.
        """
        whole = with_defaults(MessageChanges, changes, "alter_message")
        row = await self._row(
            "alter_message",
            queue_name=queue_name,
            message_id=message_id,
            **message_arguments(data, text, whole, self._default),
        )
        return RetryOutcome(*row)

    async def reset(
        self,
        queue_name: str,
        message_ids: Sequence[int] | None = None,
        *,
        max_messages: int = 1000,
        message_type: str | None = None,
        died_before: datetime | None = None,
    ) -> list[Outcome]:
        """Make dead messages ready again with fresh attempts; by default the oldest.

        `message_type` and `died_before` filter them if `message_ids` is None; other messages are
        skipped and not counted. Outcomes: "reset", "duplicate", "not_found".
        """
        rows = await self._rows(
            "reset",
            queue_name=queue_name,
            message_ids=message_ids,
            max_messages=max_messages,
            message_type=message_type,
            died_before=died_before,
        )
        return [Outcome(*row) for row in rows]

    async def discard_dead(
        self,
        queue_name: str,
        message_ids: Sequence[int] | None = None,
        *,
        max_messages: int = 1000,
        message_type: str | None = None,
        died_before: datetime | None = None,
    ) -> Discarded:
        """Delete dead messages without archiving them; by default the oldest.

        `message_type` and `died_before` filter them as in reset. A message that is not dead, or is
        locked by another session, is skipped and not counted. On MariaDB and MySQL raises
        QueueBusy as `cancel` does.
        """
        row = await self._row(
            "discard_dead",
            queue_name=queue_name,
            message_ids=message_ids,
            max_messages=max_messages,
            message_type=message_type,
            died_before=died_before,
        )
        return Discarded(*row)

    # schedule

    @takes(ScheduleSettings)
    async def create_schedule(
        self,
        queue_name: str,
        schedule_name: str,
        data: Any = None,
        *,
        text: str | None = None,
        **settings: Unpack[ScheduleSettings],
    ) -> ScheduleOutcome:
        """Create a schedule, or return "exists" without changing an existing one.

        maintain enqueues the message at the times of `cron`, such as "0 3 * * mon-fri" in
        `time_zone`, or every `interval_seconds`. `missed` is the policy for ticks more than 60
        seconds late: "once", "all" or "skip". Without `overlap`, a tick is skipped while the
        message of an earlier tick is unfinished. With counts_from="end" each tick comes
        `interval_seconds` after the end of the message before. The message has the headers
        "schedule" and "tick", and from the end also "previous_message_id".
        """
        whole = with_defaults(ScheduleSettings, settings, "create_schedule")
        row = await self._row(
            "create_schedule",
            queue_name=queue_name,
            schedule_name=schedule_name,
            **message_arguments(data, text, whole, self._default),
        )
        return ScheduleOutcome(*row)

    @takes(ScheduleChanges)
    async def alter_schedule(
        self,
        queue_name: str,
        schedule_name: str,
        data: Any = None,
        *,
        text: str | None = None,
        **changes: Unpack[ScheduleChanges],
    ) -> ScheduleOutcome:
        """Change, pause or resume a schedule; None leaves a setting unchanged.

        Its ticks are counted from now; missed ticks are dropped. Raises ScheduleNotFound.
        """
        whole = with_defaults(ScheduleChanges, changes, "alter_schedule")
        row = await self._row(
            "alter_schedule",
            queue_name=queue_name,
            schedule_name=schedule_name,
            **message_arguments(data, text, whole, self._default),
        )
        return ScheduleOutcome(*row)

    async def drop_schedule(self, queue_name: str, schedule_name: str) -> DroppedSchedule:
        """Drop a schedule; its messages stay. Raises ScheduleNotFound."""
        row = await self._row("drop_schedule", queue_name=queue_name, schedule_name=schedule_name)
        return DroppedSchedule(*row)

    async def run_schedule(self, queue_name: str, schedule_name: str) -> Enqueued:
        """Enqueue a schedule's message now, even if it is paused; the next tick is unchanged.

        The outcome is "duplicate" if it must not overlap with an earlier message. Raises
        ScheduleNotFound.
        """
        row = await self._row("run_schedule", queue_name=queue_name, schedule_name=schedule_name)
        return Enqueued(*row)

    async def list_schedules(self, queue_name: str | None = None) -> list[Schedule]:
        """Return the schedules of one queue or all, without bodies and headers."""
        rows = await self._rows("list_schedules", queue_name=queue_name)
        return [Schedule(*row) for row in rows]

    async def next_ticks(
        self,
        cron: str | None = None,
        *,
        interval_seconds: float | None = None,
        time_zone: str = "UTC",
        after: datetime | None = None,
        max_ticks: int = 5,
    ) -> list[datetime]:
        """Return the next times at which such a schedule would run, from now or `after` a time."""
        rows = await self._rows(
            "next_ticks",
            cron=cron,
            interval_seconds=interval_seconds,
            time_zone=time_zone,
            after=after,
            max_ticks=max_ticks,
        )
        return [row[0] for row in rows]

    # maintain

    async def maintain(
        self, queue_name: str | None = None, batch_size: int = 1000
    ) -> list[Maintained]:
        """Run the maintenance of one queue or all; call it about once a second, in autocommit.

        One session at a time is elected, until its transaction ends.
        """
        rows = await self._rows("maintain", queue_name=queue_name, batch_size=batch_size)
        return [Maintained(*row) for row in rows]

    async def reap(self, queue_name: str, batch_size: int = 1000) -> Reaped:
        """Return the unfinished messages of expired claims to their queue."""
        return Reaped(*await self._row("reap", queue_name=queue_name, batch_size=batch_size))

    async def promote(self, queue_name: str, batch_size: int = 1000) -> Promoted:
        """Make due delayed messages ready."""
        return Promoted(*await self._row("promote", queue_name=queue_name, batch_size=batch_size))

    async def archive(self, queue_name: str, batch_size: int = 1000) -> Archived:
        """Move finished messages of a queue with archive_days above 0 to the archive."""
        return Archived(*await self._row("archive", queue_name=queue_name, batch_size=batch_size))

    async def purge_archive(self, queue_name: str, batch_size: int = 1000) -> PurgedArchive:
        """Delete archive and history rows older than the queue keeps; drop unneeded partitions."""
        row = await self._row("purge_archive", queue_name=queue_name, batch_size=batch_size)
        return PurgedArchive(*row)

    async def report_worker(
        self,
        queue_name: str,
        worker_id: str,
        *,
        worker_name: str | None = None,
        host_name: str | None = None,
        worker_version: str | None = None,
        threads: int = 1,
        completed: int = 0,
        failed: int = 0,
        is_ended: bool = False,
    ) -> QueueOutcome:
        """Report that a worker runs, and its counts since its start; rowq.Worker does this.

        Call it about every 10 seconds, in autocommit, and with `is_ended` when the worker ends.
        """
        row = await self._row(
            "report_worker",
            queue_name=queue_name,
            worker_id=worker_id,
            worker_name=worker_name,
            host_name=host_name,
            worker_version=worker_version,
            threads=threads,
            completed=completed,
            failed=failed,
            is_ended=is_ended,
        )
        return QueueOutcome(*row)

    # inspect

    async def queue_stats(
        self,
        queue_name: str | None = None,
        *,
        max_count: int = 100000,
        after_queue_name: str | None = None,
        max_queues: int | None = None,
    ) -> list[QueueStats]:
        """Return counts, age and settings of one queue or all, by name.

        Counting stops at `max_count`. To read many queues in pages, pass `max_queues`, and the last
        name of a page as `after_queue_name`.
        """
        rows = await self._rows(
            "queue_stats",
            queue_name=queue_name,
            max_count=max_count,
            after_queue_name=after_queue_name,
            max_queues=max_queues,
        )
        return [QueueStats(*row) for row in rows]

    async def get_message(self, queue_name: str, message_id: int) -> MessageDetails | None:
        """Return a message's state and all its details, or None if it does not exist."""
        rows = await self._rows("get_message", queue_name=queue_name, message_id=message_id)
        return MessageDetails(*rows[0]) if rows else None

    async def find_message(self, queue_name: str, dedup_key: str) -> MessageDetails | None:
        """Return the details of the unfinished message with this dedup key, or None."""
        rows = await self._rows("find_message", queue_name=queue_name, dedup_key=dedup_key)
        return MessageDetails(*rows[0]) if rows else None

    async def get_result(self, queue_name: str, message_id: int) -> MessageResult | None:
        """Return the outcome and result of a message, or None if it does not exist.

        An unfinished message has a state only. `result` is None if none was set, or if the
        queue's result_seconds have passed.
        """
        rows = await self._rows("get_result", queue_name=queue_name, message_id=message_id)
        return MessageResult(*rows[0]) if rows else None

    async def get_history(self, queue_name: str, message_id: int) -> list[Attempt]:
        """Return the attempts of a message: the ended ones, oldest first, then the current lease.

        The queue keeps ended attempts for history_days, even if the message is gone. The current
        lease has `ended_at` and `outcome` None.
        """
        rows = await self._rows("get_history", queue_name=queue_name, message_id=message_id)
        return [Attempt(*row) for row in rows]

    async def explain_message(self, queue_name: str, message_id: int) -> list[Reason]:
        """Return the reasons why a message is not delivered now; `str(reason)` is a sentence."""
        rows = await self._rows("explain_message", queue_name=queue_name, message_id=message_id)
        return [Reason(*row) for row in rows]

    async def wait_for_result(
        self, queue_name: str, message_id: int, *, wait_seconds: float = 20
    ) -> MessageResult | None:
        """Wait until a message has ended, and return its outcome and result.

        After the wait, return the state of the unfinished message. As in dequeue_wait, each call
        waits up to 5 seconds. Raises InvalidArgument if the queue has no result_seconds,
        WrongTransactionState unless the connection is in autocommit, outside a transaction.
        """
        arguments = {"queue_name": queue_name, "message_id": message_id}
        row, *_ = await self._session.wait("wait_for_result", arguments, wait_seconds, has_ended)
        return None if row[0] is None else result_from_json(row[0])

    async def list_dead(
        self,
        queue_name: str,
        *,
        after_message_id: int = 0,
        max_messages: int = 100,
        before_message_id: int | None = None,
        message_type: str | None = None,
    ) -> list[DeadMessage]:
        """Return dead messages, without their bodies, in id order.

        `before_message_id` reverses the order: 2**63 - 1 starts with the newest. Messages of
        another type than `message_type` are left out, but still scanned.
        """
        rows = await self._rows(
            "list_dead",
            queue_name=queue_name,
            after_message_id=after_message_id,
            max_messages=max_messages,
            before_message_id=before_message_id,
            message_type=message_type,
        )
        return [DeadMessage(*row) for row in rows]

    async def list_delayed(
        self,
        queue_name: str,
        *,
        after_due_at: datetime | None = None,
        after_message_id: int = 0,
        max_messages: int = 100,
    ) -> list[DelayedMessage]:
        """Return delayed messages, without their bodies, the next due first.

        Continue with `due_at` and `message_id` of the last one.
        """
        rows = await self._rows(
            "list_delayed",
            queue_name=queue_name,
            after_due_at=after_due_at,
            after_message_id=after_message_id,
            max_messages=max_messages,
        )
        return [DelayedMessage(*row) for row in rows]

    async def list_claims(
        self, queue_name: str | None = None, *, after_claim_id: int = 0, max_claims: int = 100
    ) -> list[Claim]:
        """Return the claims of one queue or all, in id order."""
        rows = await self._rows(
            "list_claims",
            queue_name=queue_name,
            after_claim_id=after_claim_id,
            max_claims=max_claims,
        )
        return [Claim(*row) for row in rows]

    async def list_workers(self, queue_name: str | None = None) -> list[WorkerReport]:
        """Return the workers of one queue or all that reported within the last hour."""
        rows = await self._rows("list_workers", queue_name=queue_name)
        return [WorkerReport(*row) for row in rows]

    async def list_topics(self, queue_name: str | None = None) -> list[TopicBinding]:
        """Return the patterns of one queue or all."""
        rows = await self._rows("list_topics", queue_name=queue_name)
        return [TopicBinding(*row) for row in rows]

    async def health(self) -> list[HealthCheck]:
        """Return the health checks: overdue messages, expired leases, blocking sessions..."""
        return [HealthCheck(*row) for row in await self._rows("health")]

    async def after_failover(self) -> list[AdvancedNumber]:
        """Continue numbers far beyond those that another server may have given out.

        Call it once on the server that takes over, before its workers start.
        """
        return [AdvancedNumber(*row) for row in await self._rows("after_failover")]

    async def version(self) -> InstalledVersion:
        """Return the installed version."""
        return InstalledVersion(*await self._row("version"))

    async def _rows(self, routine: str, **arguments: Any) -> list[Row]:
        if traces := tracing.active:
            return await self._traced(traces, routine, arguments)
        return await self._session.call(routine, arguments)

    async def _row(self, routine: str, **arguments: Any) -> Row:
        if traces := tracing.active:
            rows = await self._traced(traces, routine, arguments)
        else:
            rows = await self._session.call(routine, arguments)
        return rows[0]

    async def _traced(
        self, traces: "Traces", routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        with traces.calling(routine, arguments) as sending:
            rows = await self._session.call(routine, sending.arguments)
            sending.record(rows)
        return rows


def dequeue_arguments(
    queue_name: str, batch_size: int, worker_name: str | None, lease_seconds: int | None
) -> dict[str, Any]:
    """Return the arguments that all dequeue routines share."""
    return {
        "queue_name": queue_name,
        "batch_size": batch_size,
        "worker_name": worker_name,
        "lease_seconds": lease_seconds,
    }
