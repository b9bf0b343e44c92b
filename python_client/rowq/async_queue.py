"""AsyncQueue: one method per routine, with the routine's name and parameters.

queue.py is made from this file by make generate.

Every method does one call and nothing else; dequeue_wait and wait_for_result do one for every 5
seconds. What parameters and columns mean stands in sql/CONTRACT.md; in short: seconds are seconds,
priority 0 goes first, and None means the queue's setting, or nothing. Every method raises
InvalidArgument for what is out of range and QueueNotFound for a queue that does not exist; further
errors are named where they can happen.
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
    Outcome,
    PeekedMessage,
    Promoted,
    Published,
    PurgedArchive,
    PurgedQueue,
    QueueOutcome,
    QueueStats,
    Reaped,
    RetryOutcome,
    Schedule,
    ScheduleOutcome,
    TopicBinding,
    TopicOutcome,
    WorkerReport,
)
from rowq.options import (
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
    """Return an AsyncQueue with a connection of its own, in autocommit.

    When the connection breaks, or its server does not write any more, it is made again with
    back-off for up to `reconnect_seconds` from the first failure, and the call repeated if that can
    do no harm; else ConnectionLost says that its effect is unknown. Raises CannotConnect when the
    first connection fails. Tasks that share it take turns. `default` is that of AsyncQueue.
    """
    session = AsyncOwnedSession(url, reconnect_seconds=reconnect_seconds)
    await session.open()
    return AsyncQueue(session, default=default)


class AsyncQueue:
    """The routines of rowq as methods.

    On the caller's own connection it never connects, commits, repeats or closes: what is enqueued
    exists if and only if the caller's transaction commits.
    """

    def __init__(
        self, connection: Any, *, savepoint: bool = False, default: Default | None = None
    ) -> None:
        """Use a connection of the caller's, or a session of rowq's.

        Args:
            connection: the engine's driver's, of asyncio also asyncpg's, or what SQLAlchemy or
                Django has put around one.
            savepoint: set a savepoint before each call in an open transaction, and return to it
                when the call raises, so that the transaction can go on. It costs two round trips a
                call on PostgreSQL; the other engines' routines do so by themselves, and nothing is
                added to their calls.
            default: called with a value of a body or of headers that is no JSON value, returns one
                that is, as for json.dumps; `str` does for Decimal, datetime and UUID.

        Raises:
            EngineUnknown: it is no connection of a driver that rowq knows.
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
        """Close the connection if it is this queue's own; the caller's stays open.

        Every later call raises QueueClosed. A call under way in another task ends first.
        """
        await self._session.end()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Name the methods that are meant by one that is not there."""
            hint = ": dequeue_fast returns at once, dequeue_wait waits" if name == "dequeue" else ""
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{hint}")

    # admin

    @takes(QueueSettings)
    async def create_queue(
        self, queue_name: str, **settings: Unpack[QueueSettings]
    ) -> QueueOutcome:
        """Create a queue; an existing queue of that name is left as it is ("exists").

        For `result_seconds` after a message's end get_result knows how it ended, and for
        `history_days` get_history who had it, and when; 0 is not at all.
        """
        whole = with_defaults(QueueSettings, settings, "create_queue")
        return QueueOutcome(*await self._row("create_queue", queue_name=queue_name, **whole))

    @takes(QueueSettings)
    async def alter_queue(self, queue_name: str, **settings: Unpack[QueueSettings]) -> QueueOutcome:
        """Change settings of a queue; None leaves a setting as it is, and 0 takes a limit away."""
        whole = with_defaults(QueueSettings, settings, "alter_queue")
        return QueueOutcome(*await self._row("alter_queue", queue_name=queue_name, **whole))

    async def drop_queue(self, queue_name: str, *, force: bool = False) -> QueueOutcome:
        """Remove an empty queue, or with `force` a queue and everything in it, archive included.

        Raises QueueNotEmpty without force, QueueBusy when open transactions do not end in time.
        """
        return QueueOutcome(*await self._row("drop_queue", queue_name=queue_name, force=force))

    async def pause_queue(self, queue_name: str) -> QueueOutcome:
        """Stop delivery; enqueue and the finishing methods go on."""
        return QueueOutcome(*await self._row("pause_queue", queue_name=queue_name))

    async def resume_queue(self, queue_name: str) -> QueueOutcome:
        """Start delivery again."""
        return QueueOutcome(*await self._row("resume_queue", queue_name=queue_name))

    async def bind_topic(self, queue_name: str, topic_pattern: str) -> TopicOutcome:
        """Let a queue get what is published under the topics that a pattern matches.

        A pattern is a topic in which a word may be "*", which is any one word, and the last one
        "#", any words or none. Outcomes: "bound", "exists".
        """
        row = await self._row("bind_topic", queue_name=queue_name, topic_pattern=topic_pattern)
        return TopicOutcome(*row)

    async def unbind_topic(self, queue_name: str, topic_pattern: str) -> TopicOutcome:
        """Take a queue's pattern away; what it has got stays. Outcomes: "unbound", "not_bound"."""
        row = await self._row("unbind_topic", queue_name=queue_name, topic_pattern=topic_pattern)
        return TopicOutcome(*row)

    async def purge_queue(
        self, queue_name: str, *, include_dead: bool = False, max_messages: int | None = None
    ) -> PurgedQueue:
        """Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.

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
        """Hand over one message.

        `data` is any JSON value, or bytes; the queue's `default` makes JSON of other values. `text`
        is a text body sent as it is. The outcome is
        "duplicate" when an unfinished message has the same `dedup_key`; its id is returned.
        Messages of one `group_key` go out in their order, one at a time. One with `predecessor_ids`
        waits until those have ended; `on_predecessor_dead` is "hold" (unless set), "continue" or
        "fail". A message that has not ended `expire_seconds` after it was enqueued, 0.001 to
        315360000, is withdrawn by maintain, unless a worker holds it then. All of these are refused
        on an engine that does not have them yet.
        """
        whole = with_defaults(MessageOptions, options, "enqueue")
        message = message_arguments(data, text, whole, self._default)
        row = await self._row("enqueue", queue_name=queue_name, **message)
        return Enqueued(*row)

    async def enqueue_batch(
        self, queue_name: str, messages: Iterable[NewMessage | Any]
    ) -> list[BatchEnqueued]:
        """Hand over up to 10000 messages in one call: all of them or, on an error, none.

        Each is a NewMessage, or a plain value as the `data` of enqueue: JSON or bytes, not None.
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
        """Hand over one message to each queue that is bound to `topic`, as enqueue does.

        A topic is words of letters, digits, "_" and "-" with dots between, of up to 200
        characters. Without a `message_type` it is the topic. The result is in the order of the
        queues' names, and empty where none is bound. A `dedup_key` and a `group_key` count in each
        queue by itself. A queue that is dropped meanwhile is left out.
        """
        whole = with_defaults(PublishOptions, options, "publish")
        message = message_arguments(data, text, whole, self._default)
        rows = await self._rows("publish", topic=topic, **message)
        return [Published(*row) for row in rows]

    async def publish_batch(self, messages: Iterable[NewMessage]) -> list[BatchPublished]:
        """Publish up to 10000 messages, each with its `topic`: all or, on an error, none.

        The result is queue by queue, in the order of their names.
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
        """Lease up to `batch_size` ready messages, passing over rows another session holds."""
        arguments = dequeue_arguments(queue_name, batch_size, worker_name, lease_seconds)
        traces = tracing.active
        asked_at = time.monotonic() if traces else 0.0
        rows = await self._session.call("dequeue_fast", arguments)
        messages = [Message(*row) for row in rows]
        if traces:
            traces.note_received(queue_name, messages, asked_at)
        return messages

    async def dequeue_wait(
        self,
        queue_name: str,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
        wait_seconds: float = 20,
    ) -> list[Message]:
        """Dequeue as dequeue_fast does, but wait for a message; an empty list when the time is up.

        The server is asked to wait for 5 seconds at a time, as it would not notice that the client
        is gone. Between two such waits others that share the queue object make their calls.

        Raises WrongTransactionState unless the connection is in autocommit, outside a transaction.
        """
        arguments = dequeue_arguments(queue_name, batch_size, worker_name, lease_seconds)
        traces = tracing.active
        asked_at = time.monotonic() if traces else 0.0
        row, *_ = await self._session.wait("dequeue_wait", arguments, wait_seconds, bool)
        messages = [message_from_json(entry) for entry in row[0] or ()]
        if traces:
            traces.note_received(queue_name, messages, asked_at)
        return messages

    async def peek(self, queue_name: str, *, max_messages: int = 1) -> list[PeekedMessage]:
        """Show the next ready messages without leasing them."""
        rows = await self._rows("peek", queue_name=queue_name, max_messages=max_messages)
        return [PeekedMessage(*row) for row in rows]

    # finish: message_ids None means every message that the claim still holds. These methods raise
    # StaleClaim when there is no such claim any more.

    async def complete(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: Sequence[int] | None = None,
        *,
        results: Sequence[Any] | None = None,
    ) -> list[Outcome]:
        """Finish messages: never delivered again. Outcomes: "completed", "stale".

        `results` has a JSON value for each of `message_ids`, in their order, for get_result and
        wait_for_result; None among them is no result. Without `message_ids` the claim must hold one
        message. Raises InvalidArgument where the queue has no result_seconds.
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
        """Give messages back for another attempt after `delay_seconds`, else the queue's backoff.

        Outcomes: "retrying", "dead" when no attempt is left, "cancelled", "stale".
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
        """Declare messages dead without another attempt.

        Outcomes: "dead", "cancelled", "stale".
        """
        rows = await self._rows(
            "fail_now",
            queue_name=queue_name,
            claim_id=claim_id,
            message_ids=message_ids,
            error=error,
        )
        return [Outcome(*row) for row in rows]

    async def release(
        self, queue_name: str, claim_id: int, message_ids: Sequence[int] | None = None
    ) -> list[Outcome]:
        """Give messages back to the front of their priority without spending the attempt.

        Outcomes: "released", "cancelled", "stale".
        """
        rows = await self._rows(
            "release", queue_name=queue_name, claim_id=claim_id, message_ids=message_ids
        )
        return [Outcome(*row) for row in rows]

    async def extend_lease(
        self,
        queue_name: str,
        claim_id: int,
        *,
        lease_seconds: int | None = None,
        progress: str | None = None,
    ) -> Lease:
        """Hold all messages of a claim for `lease_seconds` from now; never shortens the lease.

        `progress` is how far the work is, in the worker's own words, for get_message; None leaves
        what is there. The answer's cancel_ids are messages of the claim that were cancelled
        meanwhile. Raises StaleClaim when the claim is gone.
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
        """Withdraw messages, dead ones too.

        With `include_leased` also those that a worker holds: it is told at its next heartbeat, and
        the message ends as cancelled unless the worker completes it. Outcomes: "cancelled",
        "requested" (a worker holds it, and is told), "leased" (a worker holds it; with
        `include_leased`, another session is at work on its claim: ask again), "not_found". On
        MariaDB and MySQL raises QueueBusy where an open transaction that it has to wait for does
        not end in time.
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
        """Withdraw messages that match every filter given and that no worker holds, dead ones too.

        At least one filter is required. A call looks at up to `max_messages` messages in the order
        of their ids, after `after_message_id`: call again with that of the answer until it is None.
        `header_name` is a header of the first level, `header_value` the text of its string, or its
        whole number, true or false as JSON writes them. On MariaDB and MySQL raises QueueBusy as
        `cancel` does.
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

    async def reset(
        self,
        queue_name: str,
        message_ids: Sequence[int] | None = None,
        *,
        max_messages: int = 1000,
        message_type: str | None = None,
        died_before: datetime | None = None,
    ) -> list[Outcome]:
        """Make dead messages ready again with fresh attempts; None takes the oldest.

        Instead of `message_ids`, `message_type` and `died_before` say which of them; what does not
        match is passed over and not counted. Outcomes: "reset", "duplicate", "not_found".
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
        """Delete dead messages for good; None takes the oldest. The archive keeps none of them.

        `message_type` and `died_before` say which of them, as for reset. A message that is not
        dead, or that another session is at work on, is left alone and not counted. On MariaDB and
        MySQL raises QueueBusy as `cancel` does.
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
        """Let maintain enqueue a message at certain times; an existing schedule stays ("exists").

        The times are those of `cron`, such as "0 3 * * mon-fri", by the clocks of `time_zone`, or
        every `interval_seconds`. `missed` says what becomes of ticks that are found more than 60
        seconds late: "once", "all" or "skip". Without `overlap` a tick makes no message while that
        of an earlier one has not ended. The message has the headers "schedule" and "tick".
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
        """Change a schedule, pause it or let it go on; None leaves a setting as it is.

        It counts anew from now, and what it has missed is not made up for. Raises ScheduleNotFound.
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
        """Remove a schedule; the messages that it made stay. Raises ScheduleNotFound."""
        row = await self._row("drop_schedule", queue_name=queue_name, schedule_name=schedule_name)
        return DroppedSchedule(*row)

    async def run_schedule(self, queue_name: str, schedule_name: str) -> Enqueued:
        """Enqueue a schedule's message now, paused or not; its next tick stays as it is.

        The outcome is "duplicate" where it must not overlap with an earlier one. Raises
        ScheduleNotFound.
        """
        row = await self._row("run_schedule", queue_name=queue_name, schedule_name=schedule_name)
        return Enqueued(*row)

    async def list_schedules(self, queue_name: str | None = None) -> list[Schedule]:
        """The schedules of one queue, or of all, without their bodies and headers."""
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
        """When a schedule with these times would run, from now on or `after` a moment."""
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
        """Do all housekeeping of one queue, or of every queue; call it about once a second.

        Call it in autocommit: one session at a time is elected until its transaction ends.
        """
        rows = await self._rows("maintain", queue_name=queue_name, batch_size=batch_size)
        return [Maintained(*row) for row in rows]

    async def reap(self, queue_name: str, batch_size: int = 1000) -> Reaped:
        """Take unfinished messages back from claims whose lease ran out."""
        return Reaped(*await self._row("reap", queue_name=queue_name, batch_size=batch_size))

    async def promote(self, queue_name: str, batch_size: int = 1000) -> Promoted:
        """Make delayed messages ready whose time has come."""
        return Promoted(*await self._row("promote", queue_name=queue_name, batch_size=batch_size))

    async def archive(self, queue_name: str, batch_size: int = 1000) -> Archived:
        """Move finished messages of a queue with archive_days above 0 to the archive."""
        return Archived(*await self._row("archive", queue_name=queue_name, batch_size=batch_size))

    async def purge_archive(self, queue_name: str, batch_size: int = 1000) -> PurgedArchive:
        """Delete what archive and history have kept for their days; drop unneeded partitions."""
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
        """Report that a worker runs, and what it has done since its start; rowq.Worker does it.

        Call it every ten seconds or so, in autocommit, and with `is_ended` at the worker's end.
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

    # look

    async def queue_stats(
        self, queue_name: str | None = None, *, max_count: int = 100000
    ) -> list[QueueStats]:
        """Return counts, age and settings of one queue or all; counting stops at `max_count`."""
        rows = await self._rows("queue_stats", queue_name=queue_name, max_count=max_count)
        return [QueueStats(*row) for row in rows]

    async def get_message(self, queue_name: str, message_id: int) -> MessageDetails | None:
        """Return where a message is and everything about it; None when rowq does not know it."""
        rows = await self._rows("get_message", queue_name=queue_name, message_id=message_id)
        return MessageDetails(*rows[0]) if rows else None

    async def find_message(self, queue_name: str, dedup_key: str) -> MessageDetails | None:
        """Return what get_message does of the unfinished message that has a dedup key, or None."""
        rows = await self._rows("find_message", queue_name=queue_name, dedup_key=dedup_key)
        return MessageDetails(*rows[0]) if rows else None

    async def get_result(self, queue_name: str, message_id: int) -> MessageResult | None:
        """Return how a message has ended, and its result; None when rowq does not know it.

        Of one that has not ended there is the state only. What was not given a result, and what the
        queue has kept for its result_seconds, has `result` None.
        """
        rows = await self._rows("get_result", queue_name=queue_name, message_id=message_id)
        return MessageResult(*rows[0]) if rows else None

    async def get_history(self, queue_name: str, message_id: int) -> list[Attempt]:
        """Return the attempts of a message: those that ended, oldest first, then the present lease.

        Those that have ended are there for the queue's history_days, also when the message is gone.
        The lease has `ended_at` and `outcome` None.
        """
        rows = await self._rows("get_history", queue_name=queue_name, message_id=message_id)
        return [Attempt(*row) for row in rows]

    async def wait_for_result(
        self, queue_name: str, message_id: int, *, wait_seconds: float = 20
    ) -> MessageResult | None:
        """Wait until a message has ended, and return what get_result does.

        When the time is up, that is the state in which the message is. As dequeue_wait does, it
        asks the server to wait for 5 seconds at a time. Raises InvalidArgument where the queue has
        no result_seconds, WrongTransactionState unless the connection is in autocommit, outside a
        transaction.
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
        """Return dead messages, without their bodies, in the order of their ids.

        `before_message_id` goes backwards from there instead: 2**63 - 1 begins with the newest. A
        `message_type` leaves the others out, which are looked at all the same.
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
        """Return messages that wait for their time, without their bodies, the next ones first.

        Go on with `due_at` and `message_id` of the last one.
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
        """Return who is at work on what: claims of one queue or all, in the order of their ids."""
        rows = await self._rows(
            "list_claims",
            queue_name=queue_name,
            after_claim_id=after_claim_id,
            max_claims=max_claims,
        )
        return [Claim(*row) for row in rows]

    async def list_workers(self, queue_name: str | None = None) -> list[WorkerReport]:
        """Return the workers of one queue, or of all, that have reported within the last hour."""
        rows = await self._rows("list_workers", queue_name=queue_name)
        return [WorkerReport(*row) for row in rows]

    async def list_topics(self, queue_name: str | None = None) -> list[TopicBinding]:
        """Return the patterns of one queue or all."""
        rows = await self._rows("list_topics", queue_name=queue_name)
        return [TopicBinding(*row) for row in rows]

    async def health(self) -> list[HealthCheck]:
        """Return what needs attention: overdue messages, expired leases, sessions in the way..."""
        return [HealthCheck(*row) for row in await self._rows("health")]

    async def version(self) -> InstalledVersion:
        """Return what is installed."""
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
            sending.note(rows)
        return rows


def dequeue_arguments(
    queue_name: str, batch_size: int, worker_name: str | None, lease_seconds: int | None
) -> dict[str, Any]:
    """Return the arguments that every way of dequeuing shares, a worker's too."""
    return {
        "queue_name": queue_name,
        "batch_size": batch_size,
        "worker_name": worker_name,
        "lease_seconds": lease_seconds,
    }
