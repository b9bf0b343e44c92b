"""Options of a message and settings of a queue, as sql/contract.toml names and describes them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypedDict, TypeVar, get_type_hints

_F = TypeVar("_F", bound=Callable[..., Any])

# options: generated from contract.toml by make generate
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "MessageOptions": {"priority": 5},
    "PublishOptions": {"priority": 5},
    "ScheduleSettings": {
        "time_zone": "UTC",
        "priority": 5,
        "missed": "once",
        "overlap": True,
        "counts_from": "start",
    },
}
"""Defaults other than None, by class."""


class QueueSettings(TypedDict, total=False):
    """Settings of a queue."""

    lease_seconds: int | None
    """Length of the lease in seconds: 1 to 86400."""

    max_attempts: int | None
    """Maximum number of leases before the message is dead: 1 to 10000. 0 means no limit: a
    message that kills its worker then does so again and again.
    """

    backoff_base_seconds: float | None
    """Delay in seconds before the second attempt: 0 to 86400."""

    backoff_factor: float | None
    """Growth of the delay per further attempt: 1 to 10."""

    backoff_cap_seconds: float | None
    """Maximum delay in seconds: 0 to 31536000."""

    backoff_jitter: float | None
    """Maximum share of a delay that is subtracted at random: 0 to 1."""

    archive_days: int | None
    """Days to keep finished messages in the archive: 0 to 36500. 0 deletes them when they
    finish.
    """

    max_body_length: int | None
    """Maximum length of a body: characters of text or bytes of binary, 1 to 33554432. Default
    1048576.
    """

    group_limit: int | None
    """Maximum number of messages of one group that are ready, leased or waiting for a retry: 1
    to 100. Default 1. Above 1 the order is not kept.
    """

    group_after_dead: str | None
    """If a message dies: continue (default) delivers the next one of its group; hold stops the
    group until the dead one is reset, cancelled or purged.
    """

    group_pause_seconds: float | None
    """Pause in seconds after each message of a group: 0 to 86400. Default 0. maintain ends the
    pause.
    """

    max_leased: int | None
    """Maximum number of leased messages: 0 to 100000. Default 0: no limit. Every dequeue counts
    them, so keep it below about 10000.
    """

    rate_limit: int | None
    """Maximum number of deliveries per rate_seconds, retries included: 0 to 100000. Default 0:
    no limit. Every dequeue counts them, so keep it below about 10000 and shorten rate_seconds
    instead.
    """

    rate_seconds: float | None
    """Interval for rate_limit in seconds: 0.1 to 86400. Default 1."""

    result_seconds: float | None
    """Seconds to keep the outcome and result of an ended message: 0 to 31536000. Default 0: not
    kept.
    """

    history_days: int | None
    """Days to keep attempts for get_history: 0 to 36500. Default 0: none. maintain and
    purge_archive delete older ones.
    """


class MessageOptions(TypedDict, total=False):
    """Options of a message."""

    message_type: str | None
    """Label for the consumer: up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object: up to 65536 characters, at most 20 levels deep ({"a": 1} has 2), numbers of
    up to 100 digits with exponents from -200 to 200. PostgreSQL stores numbers without
    exponents and accepts up to 300 digits on either side of the point. MySQL stores numbers
    beyond 64 bits as doubles; enqueue_batch there also rounds numbers with too many decimals,
    and rejects JSON with a number beyond the range of a double.
    """

    priority: int
    """0 to 9; 0 is delivered first."""

    delay_seconds: float | None
    """Deliver no sooner than this many seconds from now: 0 to 315360000 (ten years). Excludes
    run_at.
    """

    run_at: datetime | None
    """Deliver no sooner than this time. A time in the past means now."""

    dedup_key: str | None
    """While an unfinished message of the queue has this key, enqueue returns that message and
    adds none. Up to 200 characters; schedule: is a reserved prefix.
    """

    max_attempts: int | None
    """Maximum number of leases before the message is dead: 1 to 10000. 0 means no limit: a
    message that kills its worker then does so again and again.
    """

    group_key: str | None
    """Messages with the same key are delivered first in, first out; at most group_limit of them
    are processed at a time. Messages with other keys are not delayed. Up to 200 characters,
    compared as bytes.
    """

    predecessor_ids: Sequence[int] | None
    """Messages of the queue that must end before this one is delivered: at most 10000, all
    existing. An id that rowq no longer knows counts as ended.
    """

    on_predecessor_dead: str | None
    """If a predecessor dies: hold (default) waits until it is reset, cancelled or purged;
    continue counts it as ended; fail makes this message dead as well. A message that failed
    this way and is reset waits for no predecessor.
    """

    expire_seconds: float | None
    """Expire the message this many seconds after it was enqueued: 0.001 to 315360000 (ten
    years). maintain does it. A worker that holds the message may still finish it. Successors
    and the next message of the group continue. In alter_message it counts from the call, and 0
    removes the expiry.
    """

    producer_name: str | None
    """Name of the producer, for display: up to 200 characters."""


class PublishOptions(TypedDict, total=False):
    """Options of a published message."""

    message_type: str | None
    """Label for the consumer: up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object: up to 65536 characters, at most 20 levels deep ({"a": 1} has 2), numbers of
    up to 100 digits with exponents from -200 to 200. PostgreSQL stores numbers without
    exponents and accepts up to 300 digits on either side of the point. MySQL stores numbers
    beyond 64 bits as doubles; enqueue_batch there also rounds numbers with too many decimals,
    and rejects JSON with a number beyond the range of a double.
    """

    priority: int
    """0 to 9; 0 is delivered first."""

    delay_seconds: float | None
    """Deliver no sooner than this many seconds from now: 0 to 315360000 (ten years). Excludes
    run_at.
    """

    run_at: datetime | None
    """Deliver no sooner than this time. A time in the past means now."""

    dedup_key: str | None
    """While an unfinished message of the queue has this key, enqueue returns that message and
    adds none. Up to 200 characters; schedule: is a reserved prefix.
    """

    max_attempts: int | None
    """Maximum number of leases before the message is dead: 1 to 10000. 0 means no limit: a
    message that kills its worker then does so again and again.
    """

    group_key: str | None
    """Messages with the same key are delivered first in, first out; at most group_limit of them
    are processed at a time. Messages with other keys are not delayed. Up to 200 characters,
    compared as bytes.
    """

    expire_seconds: float | None
    """Expire the message this many seconds after it was enqueued: 0.001 to 315360000 (ten
    years). maintain does it. A worker that holds the message may still finish it. Successors
    and the next message of the group continue. In alter_message it counts from the call, and 0
    removes the expiry.
    """

    producer_name: str | None
    """Name of the producer, for display: up to 200 characters."""


class MessageChanges(TypedDict, total=False):
    """Changes of a message; None leaves a value unchanged."""

    message_type: str | None
    """Label for the consumer: up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object: up to 65536 characters, at most 20 levels deep ({"a": 1} has 2), numbers of
    up to 100 digits with exponents from -200 to 200. PostgreSQL stores numbers without
    exponents and accepts up to 300 digits on either side of the point. MySQL stores numbers
    beyond 64 bits as doubles; enqueue_batch there also rounds numbers with too many decimals,
    and rejects JSON with a number beyond the range of a double.
    """

    priority: int | None
    """0 to 9; 0 is delivered first."""

    delay_seconds: float | None
    """Deliver no sooner than this many seconds from now: 0 to 315360000 (ten years). Excludes
    run_at.
    """

    run_at: datetime | None
    """Deliver no sooner than this time. A time in the past means now."""

    max_attempts: int | None
    """Maximum number of leases before the message is dead: 1 to 10000. 0 means no limit: a
    message that kills its worker then does so again and again.
    """

    expire_seconds: float | None
    """Expire the message this many seconds after it was enqueued: 0.001 to 315360000 (ten
    years). maintain does it. A worker that holds the message may still finish it. Successors
    and the next message of the group continue. In alter_message it counts from the call, and 0
    removes the expiry.
    """


class ScheduleSettings(TypedDict, total=False):
    """Settings of a schedule."""

    cron: str | None
    """Minute, hour, day, month and weekday as in a crontab: *, values, ranges, steps and lists,
    months and weekdays by number (0 and 7 are Sunday) or English name; or @hourly, @daily,
    @midnight, @weekly, @monthly, @yearly, @annually. If both day and weekday are restricted,
    either one matches. A local time that a clock change skips fires at the end of the gap; a
    repeated one fires once, unless the minute or hour begins with *.
    """

    interval_seconds: float | None
    """Seconds between runs, counted from starts_at: 1 to 315360000."""

    time_zone: str
    """Time zone of cron: UTC, or a name that the server knows, such as Europe/Berlin."""

    message_type: str | None
    """Label for the consumer: up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object: up to 65536 characters, at most 20 levels deep ({"a": 1} has 2), numbers of
    up to 100 digits with exponents from -200 to 200. PostgreSQL stores numbers without
    exponents and accepts up to 300 digits on either side of the point. MySQL stores numbers
    beyond 64 bits as doubles; enqueue_batch there also rounds numbers with too many decimals,
    and rejects JSON with a number beyond the range of a double.
    """

    priority: int
    """0 to 9; 0 is delivered first."""

    max_attempts: int | None
    """Maximum number of leases before the message is dead: 1 to 10000. 0 means no limit: a
    message that kills its worker then does so again and again.
    """

    group_key: str | None
    """Messages with the same key are delivered first in, first out; at most group_limit of them
    are processed at a time. Messages with other keys are not delayed. Up to 200 characters,
    compared as bytes.
    """

    missed: str
    """Policy for ticks more than 60 seconds late: once (one message for all), all (one each,
    oldest first), skip (none).
    """

    overlap: bool
    """False: a run adds no message while the message of an earlier run is unfinished. Its
    messages then have the dedup key schedule:<schedule_name>.
    """

    starts_at: datetime | None
    """Earliest run; intervals count from it. Null means now. Years 2000 to 2100."""

    ends_at: datetime | None
    """Latest run. Null means no end. Years 2000 to 2100."""

    counts_from: str
    """What interval_seconds counts from: start (starts_at, default), or end: each run comes
    interval_seconds after maintain has seen the end of the message before. end sets overlap to
    false and ignores missed; its messages have the header previous_message_id.
    """


class ScheduleChanges(TypedDict, total=False):
    """Settings of an existing schedule; None leaves a setting unchanged."""

    cron: str | None
    """Minute, hour, day, month and weekday as in a crontab: *, values, ranges, steps and lists,
    months and weekdays by number (0 and 7 are Sunday) or English name; or @hourly, @daily,
    @midnight, @weekly, @monthly, @yearly, @annually. If both day and weekday are restricted,
    either one matches. A local time that a clock change skips fires at the end of the gap; a
    repeated one fires once, unless the minute or hour begins with *.
    """

    interval_seconds: float | None
    """Seconds between runs, counted from starts_at: 1 to 315360000."""

    time_zone: str | None
    """Time zone of cron: UTC, or a name that the server knows, such as Europe/Berlin."""

    message_type: str | None
    """Label for the consumer: up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object: up to 65536 characters, at most 20 levels deep ({"a": 1} has 2), numbers of
    up to 100 digits with exponents from -200 to 200. PostgreSQL stores numbers without
    exponents and accepts up to 300 digits on either side of the point. MySQL stores numbers
    beyond 64 bits as doubles; enqueue_batch there also rounds numbers with too many decimals,
    and rejects JSON with a number beyond the range of a double.
    """

    priority: int | None
    """0 to 9; 0 is delivered first."""

    max_attempts: int | None
    """Maximum number of leases before the message is dead: 1 to 10000. 0 means no limit: a
    message that kills its worker then does so again and again.
    """

    group_key: str | None
    """Messages with the same key are delivered first in, first out; at most group_limit of them
    are processed at a time. Messages with other keys are not delayed. Up to 200 characters,
    compared as bytes.
    """

    missed: str | None
    """Policy for ticks more than 60 seconds late: once (one message for all), all (one each,
    oldest first), skip (none).
    """

    overlap: bool | None
    """False: a run adds no message while the message of an earlier run is unfinished. Its
    messages then have the dedup key schedule:<schedule_name>.
    """

    starts_at: datetime | None
    """Earliest run; intervals count from it. Null means now. Years 2000 to 2100."""

    ends_at: datetime | None
    """Latest run. Null means no end. Years 2000 to 2100."""

    is_paused: bool | None
    """True pauses the schedule, false resumes it."""

    counts_from: str | None
    """What interval_seconds counts from: start (starts_at, default), or end: each run comes
    interval_seconds after maintain has seen the end of the message before. end sets overlap to
    false and ignores missed; its messages have the header previous_message_id.
    """


# end of options


def with_defaults(kind: type, options: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return the options of a kind, such as MessageOptions, completed with defaults.

    Raises TypeError for an unknown option.
    """
    defaults = _defaults(kind)
    whole = {**defaults, **options}
    if len(whole) > len(defaults):
        unknown = next(name for name in options if name not in defaults)
        raise TypeError(
            f"{method}() got an unexpected keyword argument {unknown!r}, expected one of"
            f" {', '.join(defaults)}"
        )
    return whole


def takes(kind: type) -> Callable[[_F], _F]:
    """Replace `**options` in a function's signature by the options of a kind, for help()."""

    def show(function: _F) -> _F:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()
        shown = [*named, *keywords(kind)]
        vars(function)["__signature__"] = signature.replace(parameters=shown)
        return function

    return show


def keywords(kind: type) -> list[inspect.Parameter]:
    """Return the options of a kind as parameters of a signature."""
    hints = get_type_hints(kind)
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]
        )
        for name, default in _defaults(kind).items()
    ]


@cache
def _defaults(kind: type) -> Mapping[str, Any]:
    own = DEFAULTS.get(kind.__name__, {})
    return {name: own.get(name) for name in kind.__annotations__}
