"""Messages to enqueue, and results: one frozen dataclass per kind of result.

The fields of a result are the columns of its routine in sql/CONTRACT.md, in the same order. All
times are aware and in UTC.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from rowq.errors import UnreadableBody

_UNIT = re.compile(r"(?:dead )?messages|schedules|seconds|transactions|per cent")
"""Start of a check's detail that continues after the value."""


class UnreadableHeaders(dict[str, Any]):
    """Headers that Python cannot read, such as an integer of 5000 digits.

    Reading them raises ValueError. `text` is their JSON, `reason` why it cannot be read.
    """

    def __init__(self, text: str, reason: str) -> None:
        # C code reads a dictionary without the methods below, so it must not be empty.
        super().__init__({"unreadable headers": text})
        self.text = text
        self.reason = reason

    def __repr__(self) -> str:
        return f"UnreadableHeaders({self.text!r:.100}, {self.reason!r:.100})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnreadableHeaders) and self.text == other.text

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(f"headers cannot be read: {self.reason}")

    __getitem__ = __contains__ = __iter__ = __len__ = __bool__ = __or__ = __ror__ = _refuse
    get = keys = values = items = copy = _refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message for enqueue_batch; `data` is any JSON value or bytes, `text` a text body.

    `predecessor_positions` are predecessors earlier in the same batch, counted from 1.
    publish_batch requires `topic` and takes no predecessors.
    """

    data: Any = None
    text: str | None = None
    # options: generated from contract.toml by make generate
    message_type: str | None = None
    headers: Mapping[str, Any] | None = None
    priority: int = 5
    delay_seconds: float | None = None
    run_at: datetime | None = None
    dedup_key: str | None = None
    max_attempts: int | None = None
    group_key: str | None = None
    predecessor_ids: Sequence[int] | None = None
    on_predecessor_dead: str | None = None
    expire_seconds: float | None = None
    producer_name: str | None = None
    # end of options
    predecessor_positions: Sequence[int] | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """The outcome of an admin routine for a queue."""

    queue_name: str
    outcome: str


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """The outcome of bind_topic or unbind_topic."""

    queue_name: str
    topic_pattern: str
    outcome: str


@dataclass(frozen=True, slots=True)
class TopicBinding:
    """A topic pattern of a queue."""

    queue_name: str
    topic_pattern: str


@dataclass(frozen=True, slots=True)
class PurgedQueue:
    """The number of messages that purge_queue removed."""

    removed: int


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The message that enqueue created, or found by its dedup key."""

    message_id: int
    outcome: str


@dataclass(frozen=True, slots=True)
class BatchEnqueued:
    """As Enqueued; `position` is the message's number in the batch, from 1."""

    position: int
    message_id: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Published:
    """The message that publish created, or found by its dedup key, in a bound queue."""

    queue_name: str
    message_id: int
    outcome: str


@dataclass(frozen=True, slots=True)
class BatchPublished:
    """As Published; `position` is the message's number in the batch, from 1."""

    position: int
    queue_name: str
    message_id: int
    outcome: str


class _Body:
    """A message's body as Python data."""

    __slots__ = ()
    message_id: int
    body: str | None
    body_binary: bytes | None

    @property
    def data(self) -> Any:
        """The bytes of a binary body, the JSON value of a text body, or None.

        Raises json.JSONDecodeError if the text is not JSON, and UnreadableBody if it exceeds the
        limits of Python's JSON reader. Use `body` then.
        """
        if self.body_binary is not None:
            return self.body_binary
        try:
            return None if self.body is None else json.loads(self.body)
        except json.JSONDecodeError as error:
            text = f"the body of message {self.message_id} is not JSON: {error.msg}"
            raise json.JSONDecodeError(text, error.doc, error.pos) from None
        except RecursionError:
            raise UnreadableBody(self.message_id, "it is nested too deeply") from None
        except ValueError as error:
            raise UnreadableBody(self.message_id, str(error)) from None


@dataclass(frozen=True, slots=True)
class Message(_Body):
    """A message leased to the claim `claim_id` until `lease_until`."""

    claim_id: int
    message_id: int
    attempt: int
    message_type: str | None
    headers: dict[str, Any] | None
    body: str | None
    body_binary: bytes | None
    enqueued_at: datetime
    lease_until: datetime
    last_error: str | None


@dataclass(frozen=True, slots=True)
class NextMessages:
    """The answer of complete_and_dequeue: leased messages, and those that were not completed.

    `is_stale` means that the claim no longer holds a message that was asked for; `stale_ids` are
    those messages. If the claim is gone and no ids were passed, `stale_ids` is empty.
    """

    messages: list[Message]
    is_stale: bool
    stale_ids: list[int]


@dataclass(frozen=True, slots=True)
class PeekedMessage(_Body):
    """A ready message that is not leased."""

    message_id: int
    priority: int
    attempt: int
    message_type: str | None
    headers: dict[str, Any] | None
    body: str | None
    body_binary: bytes | None
    enqueued_at: datetime
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one message."""

    message_id: int
    outcome: str


@dataclass(frozen=True, slots=True)
class RetryOutcome:
    """The outcome of retry_later, release or alter_message, and when the message is due.

    due_at: None if the message is not delayed.
    """

    message_id: int
    outcome: str
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim's lease after extend_lease.

    cancel_ids: messages of the claim whose cancellation was requested; None if there are none.
    """

    claim_id: int
    lease_until: datetime
    cancel_ids: list[int] | None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The number of messages that one call of cancel_many cancelled.

    after_message_id: the last scanned message; None if there are no more.
    """

    cancelled: int
    after_message_id: int | None


@dataclass(frozen=True, slots=True)
class Discarded:
    """The number of dead messages that discard_dead deleted."""

    removed: int


@dataclass(frozen=True, slots=True)
class ScheduleOutcome:
    """The outcome for a schedule, and when it runs next."""

    schedule_name: str
    outcome: str
    next_run_at: datetime | None


@dataclass(frozen=True, slots=True)
class DroppedSchedule:
    """The outcome of drop_schedule."""

    schedule_name: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule: its times, its last tick, and its message without the body."""

    queue_name: str
    schedule_name: str
    cron: str | None
    interval_seconds: float | None
    time_zone: str
    is_paused: bool
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_message_id: int | None
    last_error: str | None
    missed: str
    overlap: bool
    starts_at: datetime
    ends_at: datetime | None
    message_type: str | None
    priority: int
    max_attempts: int | None
    group_key: str | None
    counts_from: str


@dataclass(frozen=True, slots=True)
class Maintained:
    """The counts of maintain for one queue.

    `expired` is None on an engine without expire_seconds.
    """

    queue_name: str
    elected: bool
    promoted: int
    reaped: int
    died: int
    archived: int
    purged: int
    partitions_dropped: int
    expired: int | None


@dataclass(frozen=True, slots=True)
class Reaped:
    """Counts of messages returned from expired claims; `died` of them had no attempt left."""

    reaped: int
    died: int


@dataclass(frozen=True, slots=True)
class Promoted:
    """The number of delayed messages made ready."""

    promoted: int


@dataclass(frozen=True, slots=True)
class Archived:
    """The number of finished messages moved to the archive."""

    archived: int


@dataclass(frozen=True, slots=True)
class PurgedArchive:
    """Counts of deleted archive and history rows, and of dropped archive partitions."""

    purged: int
    partitions_dropped: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Counts, age and settings of a queue.

    max_leased, rate_limit: 0 means no limit. result_seconds, history_days: 0 keeps none.
    """

    queue_name: str
    is_paused: bool
    ready: int
    delayed: int
    leased: int
    dead: int
    blocked: int | None
    oldest_ready_seconds: float | None
    lease_seconds: int
    max_attempts: int
    backoff_base_seconds: float
    backoff_factor: float
    backoff_cap_seconds: float
    backoff_jitter: float
    archive_days: int
    max_body_length: int
    group_limit: int | None
    group_after_dead: str | None
    group_pause_seconds: float | None
    max_leased: int | None
    rate_limit: int | None
    rate_seconds: float | None
    result_seconds: float | None
    history_days: int | None


@dataclass(frozen=True, slots=True)
class MessageDetails(_Body):
    """State and details of a message."""

    # details: generated from contract.toml by make generate
    message_id: int
    state: str
    priority: int
    attempt: int
    max_attempts: int
    message_type: str | None
    headers: dict[str, Any] | None
    body: str | None
    body_binary: bytes | None
    dedup_key: str | None
    enqueued_at: datetime
    due_at: datetime | None
    claim_id: int | None
    worker_name: str | None
    lease_until: datetime | None
    finished_at: datetime | None
    last_error: str | None
    group_key: str | None
    waits_for: int | None
    expires_at: datetime | None
    progress: str | None
    producer_name: str | None
    # end of details


@dataclass(frozen=True, slots=True)
class MessageResult:
    """Outcome and result of a message.

    state: completed, cancelled, expired or dead. An unfinished message has its current state, and
    None in the other fields.
    """

    message_id: int
    state: str
    finished_at: datetime | None
    result: Any
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One lease of a message: worker, start, end and outcome.

    outcome: completed, retrying, dead, released, snoozed, lease_expired or cancelled. The current
    lease has None in outcome and ended_at.
    """

    attempt: int
    worker_name: str | None
    leased_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a message is not delivered now; its text is a sentence.

    reason is one word, for programs: CONTRACT.md lists them. clears_at is the time at which it ends
    without a call by you. claim_id and worker_name belong to blocking_id if that is not None.
    """

    reason: str
    clears_at: datetime | None
    blocking_id: int | None
    claim_id: int | None
    worker_name: str | None
    detail: str

    def __str__(self) -> str:
        """Return a sentence: the detail, then message, worker and time."""
        facts = [
            f"message {self.blocking_id}" if self.blocking_id is not None else "",
            f"claim {self.claim_id}" if self.claim_id is not None else "",
            f"worker {self.worker_name}" if self.worker_name else "",
            f"{self.clears_at:until %Y-%m-%d %H:%M:%S} UTC" if self.clears_at else "",
        ]
        told = ", ".join(filter(None, facts))
        return f"{self.detail[:1].upper()}{self.detail[1:]}{f' ({told})' if told else ''}."


LAST_ID = 2**63 - 1
"""The greatest message id; as before_message_id it starts with the newest."""


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A dead message, without its body."""

    message_id: int
    priority: int
    attempt: int
    message_type: str | None
    enqueued_at: datetime
    died_at: datetime
    last_error: str | None


@dataclass(frozen=True, slots=True)
class DelayedMessage:
    """A delayed message, without its body."""

    message_id: int
    priority: int
    attempt: int
    message_type: str | None
    due_at: datetime
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A leased batch of messages; a negative lease_left_seconds means that the lease expired."""

    queue_name: str
    claim_id: int
    worker_name: str | None
    message_count: int
    lease_until: datetime
    lease_left_seconds: float


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The last report of a worker process.

    completed, failed: since its start. The rates are those between its last two reports.
    """

    queue_name: str
    worker_id: str
    worker_name: str | None
    host_name: str | None
    worker_version: str | None
    threads: int
    started_at: datetime
    last_seen_at: datetime
    last_seen_seconds: float
    completed: int
    failed: int
    completed_per_second: float
    failed_per_second: float


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A health check; `status` is ok, warning or critical."""

    check_name: str
    queue_name: str | None
    status: str
    value: float | None
    detail: str

    @property
    def finding(self) -> str:
        """The value with its unit and the detail: `7 dead messages, ...`."""
        if self.value is None:
            return self.detail
        if _UNIT.match(self.detail):
            return f"{self.value:,.0f} {self.detail}"
        unit = " s" if self.check_name == "clean_up_horizon" else ""
        return f"{self.value:,.0f}{unit}: {self.detail}"


@dataclass(frozen=True, slots=True)
class AdvancedNumber:
    """How far after_failover moved a kind of number: claim, message or queue."""

    name: str
    was: int
    is_now: int


@dataclass(frozen=True, slots=True)
class InstalledVersion:
    """The installed version."""

    rowq_version: str
    schema_version: int
    engine: str
