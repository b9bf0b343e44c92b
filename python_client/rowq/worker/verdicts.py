"""What becomes of messages, and how that is handed in by as few calls as possible."""

import math
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

from rowq.headers import UnreadableHeaders
from rowq.messages import Message
from rowq.queue import Queue
from rowq.worker.handlers import Fail, Release, Retry
from rowq.worker.stats import WorkerStats

_T = TypeVar("_T")

_LONGEST_DELAY_SECONDS = 315_360_000.0
_ERROR_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a message, in values that every database takes."""

    routine: Literal["complete", "retry_later", "fail_now", "release"]
    delay_seconds: float | None = None
    error: str | None = None


COMPLETED = Verdict("complete")
RELEASED = Verdict("release")


def retry(error: str) -> Verdict:
    """Return the verdict of another attempt after the queue's backoff."""
    return Verdict("retry_later", error=storable(error))


def unreadable_headers(headers: UnreadableHeaders) -> Verdict:
    """Return the verdict on a message with headers that no attempt will be able to read."""
    return Verdict("fail_now", error=storable(f"headers cannot be read: {headers.reason}"))


def verdict_of(error: BaseException) -> Verdict:
    """Return what an exception that left the handler decides: itself, or another attempt."""
    match error:
        case Fail():
            return Verdict("fail_now", error=_error_of(error))
        case Retry():
            return Verdict("retry_later", _delay_of(error), _error_of(error))
        case Release():
            return RELEASED
    lines = "".join(traceback.format_exception(error)).strip()
    return retry(lines[-_ERROR_CHARACTERS:])


def interrupted(messages: Sequence[Message]) -> dict[int, Verdict]:
    """Return another attempt for messages whose handler was ended by a KeyboardInterrupt."""
    verdict = retry("the handler was interrupted: KeyboardInterrupt")
    return {message.message_id: verdict for message in messages}


def blamed(verdicts: Mapping[int, Verdict], why: str) -> dict[int, Verdict]:
    """Return verdicts whose errors begin with what the handler did; none of them completes."""
    found: dict[int, Verdict] = {}
    for message_id, verdict in verdicts.items():
        error = storable(f"{why}; {verdict.error}" if verdict.error else why)
        done = verdict.routine == "complete"
        found[message_id] = (
            Verdict("retry_later", error=error) if done else replace(verdict, error=error)
        )
    return found


def storable(text: str) -> str:
    """Return `text` as every database takes it: no NUL, no lone surrogate, not too long."""
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return encodable.replace("\0", "\\0")[:_ERROR_CHARACTERS]


class Told(Protocol):
    """A result with an outcome."""

    @property
    def outcome(self) -> str:
        """What was done."""


Call = Callable[[], Sequence[Told]]


class Caller(Protocol):
    """Makes a call, once or until it succeeds."""

    def __call__(self, call: Callable[[], _T], /) -> _T:
        """Return what the call returns."""


def once(call: Callable[[], _T]) -> _T:
    """Make a call once: a Caller."""
    return call()


def calls_of(
    queue: Queue, queue_name: str, claim_id: int, verdicts: Mapping[int, Verdict]
) -> list[tuple[list[int], Call]]:
    """Return the calls that hand in `verdicts` by message id, each with its messages."""
    groups: dict[Verdict, list[int]] = {}
    for message_id, verdict in verdicts.items():
        groups.setdefault(verdict, []).append(message_id)
    return [
        (ids, _call(queue, queue_name, claim_id, ids, verdict)) for verdict, ids in groups.items()
    ]


def count(outcomes: Sequence[Told]) -> WorkerStats:
    """Return how many messages had which outcome."""
    counts = Counter(told.outcome for told in outcomes)
    return WorkerStats(
        processed=counts["completed"],
        retried=counts["retrying"],
        failed=counts["dead"],
        released=counts["released"],
        stale=counts["stale"],
    )


def _call(queue: Queue, queue_name: str, claim_id: int, ids: list[int], verdict: Verdict) -> Call:
    match verdict.routine:
        case "complete":
            return lambda: queue.complete(queue_name, claim_id, ids)
        case "retry_later":
            return lambda: queue.retry_later(
                queue_name, claim_id, ids, delay_seconds=verdict.delay_seconds, error=verdict.error
            )
        case "fail_now":
            return lambda: queue.fail_now(queue_name, claim_id, ids, error=verdict.error)
        case "release":
            return lambda: queue.release(queue_name, claim_id, ids)


def shown(value: object) -> str:
    """Return a value as people may read it, whatever its own methods do."""
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def _error_of(decision: Retry | Fail) -> str | None:
    """Return the error to keep; a subclass that gives none is shown by its name and arguments."""
    given = _attribute(decision, "error")
    if given is None and type(decision) in {Retry, Fail}:
        return None
    if given is None:
        return storable("".join(traceback.format_exception_only(decision)).strip())
    return storable(given if isinstance(given, str) else shown(given))


def _delay_of(decision: Retry) -> float | None:
    given = _attribute(decision, "delay_seconds")
    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), _LONGEST_DELAY_SECONDS)


def _attribute(decision: Retry | Fail, name: str) -> Any:
    """Return an attribute; a subclass may have made it a property that fails."""
    try:
        return getattr(decision, name)
    except Exception:
        return None
