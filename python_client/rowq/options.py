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
    "ScheduleSettings": {"time_zone": "UTC", "priority": 5, "missed": "once", "overlap": True},
}
"""By class, what an option is that is left out, if that is not None."""


class QueueSettings(TypedDict, total=False):
    """Settings of a queue."""

    lease_seconds: int | None
    """Length of the lease: 1 to 86400."""

    max_attempts: int | None
    """How often a message may be leased before it is dead: 1 to 10000."""

    backoff_base_seconds: float | None
    """Delay before the second attempt: 0 to 86400."""

    backoff_factor: float | None
    """Each further delay is this many times the last: 1 to 10."""

    backoff_cap_seconds: float | None
    """No delay is longer than this: 0 to 31536000."""

    backoff_jitter: float | None
    """A delay is shortened by a random share of up to this: 0 to 1."""

    archive_days: int | None
    """Days that finished messages are kept in the archive: 0 to 36500; 0 deletes them when they
    finish.
    """

    max_body_length: int | None
    """Longest body that the queue takes: characters of a text, bytes of a binary body, 1 to
    33554432; 1048576 unless set.
    """

    group_limit: int | None
    """Messages of one group that may be ready, leased or waiting for a retry at once: 1 to 100;
    1 unless set.
    """

    group_after_dead: str | None
    """What a dead message does to its group: continue (unless set) lets the next one pass, hold
    keeps the group waiting until the dead one is reset, cancelled or purged.
    """

    group_pause_seconds: float | None
    """Rest of a group between the end of one message and the next one: 0 to 86400; 0 unless
    set.
    """

    max_leased: int | None
    """Most messages of the queue that are leased at a time: 0 to 100000; 0, as unless set, is
    no limit.
    """

    rate_limit: int | None
    """Most deliveries of the queue that begin within rate_seconds, further attempts too: 0 to
    100000; 0, as unless set, is no limit.
    """

    rate_seconds: float | None
    """The time that rate_limit is about: 0.1 to 86400; 1 unless set."""

    result_seconds: float | None
    """How long it is kept how a message has ended, with its result: 0 to 31536000; 0, as unless
    set, keeps nothing.
    """

    history_days: int | None
    """Days that it is kept, for get_history, who had a message, when, and how that ended: 0 to
    36500; 0, as unless set, keeps nothing.
    """


class MessageOptions(TypedDict, total=False):
    """Options of a message."""

    message_type: str | None
    """Free label for the consumer, up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object of the caller's own: up to 65536 characters, nested at most 20 deep (a value
    inside counts: {"a": 1} is 2 deep), its numbers of up to 100 digits and with exponents from
    -200 to 200.
    """

    priority: int
    """0 to 9; 0 is delivered first."""

    delay_seconds: float | None
    """Deliver no sooner than this many seconds from now: 0 to 315360000 (ten years)."""

    run_at: datetime | None
    """Deliver no sooner than this moment; a moment in the past means now."""

    dedup_key: str | None
    """While an unfinished message of the queue has this key, enqueue returns that message."""

    max_attempts: int | None
    """How often a message may be leased before it is dead: 1 to 10000."""

    group_key: str | None
    """Messages of one key go out first in, first out, and no more than group_limit of them are
    in work at a time; other messages pass.
    """

    predecessor_ids: Sequence[int] | None
    """Messages of the queue that must end before this one is delivered: at most 10000, all of
    them there already.
    """

    on_predecessor_dead: str | None
    """What a dead predecessor does: hold (unless set) keeps the message waiting until the dead
    one is reset, cancelled or purged; continue counts it as ended; fail makes the message dead,
    too; once that one is reset it waits for none any more.
    """

    expire_seconds: float | None
    """Withdraw the message if it has not ended so many seconds after it was enqueued: 0.001 to
    315360000 (ten years).
    """


class PublishOptions(TypedDict, total=False):
    """Options of a published message."""

    message_type: str | None
    """Free label for the consumer, up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object of the caller's own: up to 65536 characters, nested at most 20 deep (a value
    inside counts: {"a": 1} is 2 deep), its numbers of up to 100 digits and with exponents from
    -200 to 200.
    """

    priority: int
    """0 to 9; 0 is delivered first."""

    delay_seconds: float | None
    """Deliver no sooner than this many seconds from now: 0 to 315360000 (ten years)."""

    run_at: datetime | None
    """Deliver no sooner than this moment; a moment in the past means now."""

    dedup_key: str | None
    """While an unfinished message of the queue has this key, enqueue returns that message."""

    max_attempts: int | None
    """How often a message may be leased before it is dead: 1 to 10000."""

    group_key: str | None
    """Messages of one key go out first in, first out, and no more than group_limit of them are
    in work at a time; other messages pass.
    """

    expire_seconds: float | None
    """Withdraw the message if it has not ended so many seconds after it was enqueued: 0.001 to
    315360000 (ten years).
    """


class ScheduleSettings(TypedDict, total=False):
    """Settings of a schedule."""

    cron: str | None
    """Minute, hour, day, month and weekday, as in a crontab: *, values, ranges, steps and lists
    of these, months and weekdays by number (0 and 7 are Sunday) or English name; or @hourly,
    @daily, @midnight, @weekly, @monthly, @yearly, @annually.
    """

    interval_seconds: float | None
    """Seconds between ticks, counted from starts_at: 1 to 315360000."""

    time_zone: str
    """Whose clocks cron means: UTC, or a name that the server knows, such as Europe/Berlin."""

    message_type: str | None
    """Free label for the consumer, up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object of the caller's own: up to 65536 characters, nested at most 20 deep (a value
    inside counts: {"a": 1} is 2 deep), its numbers of up to 100 digits and with exponents from
    -200 to 200.
    """

    priority: int
    """0 to 9; 0 is delivered first."""

    max_attempts: int | None
    """How often a message may be leased before it is dead: 1 to 10000."""

    group_key: str | None
    """Messages of one key go out first in, first out, and no more than group_limit of them are
    in work at a time; other messages pass.
    """

    missed: str
    """What becomes of ticks found more than 60 seconds late: once, one message for all of them;
    all, a message each, oldest first; skip, none.
    """

    overlap: bool
    """Whether a tick makes a message while that of an earlier tick has not ended."""

    starts_at: datetime | None
    """No tick before this moment, from which intervals are counted; null means now."""

    ends_at: datetime | None
    """No tick after this moment; null means for ever."""


class ScheduleChanges(TypedDict, total=False):
    """Settings of a schedule that is there; None leaves one as it is."""

    cron: str | None
    """Minute, hour, day, month and weekday, as in a crontab: *, values, ranges, steps and lists
    of these, months and weekdays by number (0 and 7 are Sunday) or English name; or @hourly,
    @daily, @midnight, @weekly, @monthly, @yearly, @annually.
    """

    interval_seconds: float | None
    """Seconds between ticks, counted from starts_at: 1 to 315360000."""

    time_zone: str | None
    """Whose clocks cron means: UTC, or a name that the server knows, such as Europe/Berlin."""

    message_type: str | None
    """Free label for the consumer, up to 200 characters."""

    headers: Mapping[str, Any] | None
    """JSON object of the caller's own: up to 65536 characters, nested at most 20 deep (a value
    inside counts: {"a": 1} is 2 deep), its numbers of up to 100 digits and with exponents from
    -200 to 200.
    """

    priority: int | None
    """0 to 9; 0 is delivered first."""

    max_attempts: int | None
    """How often a message may be leased before it is dead: 1 to 10000."""

    group_key: str | None
    """Messages of one key go out first in, first out, and no more than group_limit of them are
    in work at a time; other messages pass.
    """

    missed: str | None
    """What becomes of ticks found more than 60 seconds late: once, one message for all of them;
    all, a message each, oldest first; skip, none.
    """

    overlap: bool | None
    """Whether a tick makes a message while that of an earlier tick has not ended."""

    starts_at: datetime | None
    """No tick before this moment, from which intervals are counted; null means now."""

    ends_at: datetime | None
    """No tick after this moment; null means for ever."""

    is_paused: bool | None
    """True stops the schedule, false lets it go on."""


# end of options


def with_defaults(kind: type, options: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return all options of a kind, such as MessageOptions: those given, and the others' defaults.

    Raises:
        TypeError: the method has no option of that name.
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
    """Show in a function's signature each option of a kind, instead of `**options`.

    So help() and the documentation name them. A type checker reads them from `Unpack`.
    """

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
