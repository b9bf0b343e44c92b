"""Turns the verdicts on a claim's messages into as few calls as possible."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rowq.queue import Queue
from rowq.worker.handlers import Fail, Release, Retry, Verdict
from rowq.worker.stats import WorkerStats


class Told(Protocol):
    """A result with an outcome."""

    @property
    def outcome(self) -> str:
        """What was done."""


Call = Callable[[], Sequence[Told]]
Caller = Callable[[Call], Sequence[Told]]


def apply_verdicts(
    queue: Queue, queue_name: str, claim_id: int, verdicts: Mapping[int, Verdict], caller: Caller
) -> WorkerStats:
    """Hand in `verdicts` by message id, each call made by `caller`; return the outcomes' counts."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for message_id, verdict in verdicts.items():
        groups.setdefault(_key(verdict), []).append(message_id)
    total = WorkerStats()
    for ids in groups.values():
        call = _call(queue, queue_name, claim_id, ids, verdicts[ids[0]])
        total = total.plus(count(caller(call)))
    return total


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


def _key(verdict: Verdict) -> tuple[object, ...]:
    match verdict:
        case None:
            return ("complete",)
        case Retry():
            return ("retry_later", verdict.delay_seconds, verdict.error)
        case Fail():
            return ("fail_now", verdict.error)
        case Release():
            return ("release",)


def _call(queue: Queue, queue_name: str, claim_id: int, ids: list[int], verdict: Verdict) -> Call:
    match verdict:
        case None:
            return lambda: queue.complete(queue_name, claim_id, ids)
        case Retry(delay_seconds=delay, error=error):
            return lambda: queue.retry_later(
                queue_name, claim_id, ids, delay_seconds=delay, error=error
            )
        case Fail(error=error):
            return lambda: queue.fail_now(queue_name, claim_id, ids, error=error)
        case Release():
            return lambda: queue.release(queue_name, claim_id, ids)
