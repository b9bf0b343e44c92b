"""The acceptance: lets messages live in a queue of its own and compares with the contract."""

from collections.abc import Callable, Iterator

from rowq.doctor import life, two_sessions
from rowq.doctor.bench import Bench, Disagrees
from rowq.doctor.check import Check, Status
from rowq.engines import is_driver_error
from rowq.errors import RowqError

STEPS: tuple[Callable[[Bench], str], ...] = (
    life.the_order,
    life.what_is_in_them,
    life.attempts,
    life.times_and_keys,
    life.the_switch,
    life.the_archive,
    life.refusals,
    two_sessions.disjoint_batches,
    two_sessions.rollback_leaves_nothing,
    two_sessions.stale_claims,
    two_sessions.one_housekeeper,
    two_sessions.waiting,
)
"""What is tried, each with an empty queue; returns what was seen, raises Disagrees."""


def accept(url: str) -> Iterator[Check]:
    """Yield a check for each step; the queue is dropped at the end, however that comes.

    Raises:
        CannotConnect: the database could not be reached.
    """
    try:
        with Bench(url) as bench:
            for step in STEPS:
                check = _try(step, bench)
                yield check
                if check.status is Status.FAILED:
                    # What a failed step has left behind must not spoil the next one.
                    bench.drop()
                    bench.make()
    except Exception as error:
        if not _is_fault(error):
            raise
        yield Check("deep: queue", Status.FAILED, _line(error))
    else:
        yield Check("deep: queue", Status.OK, "was made, and dropped with everything in it")


def _try(step: Callable[[Bench], str], bench: Bench) -> Check:
    name = f"deep: {step.__name__.replace('_', ' ')}"
    try:
        return Check(name, Status.OK, step(bench))
    except Exception as error:
        if not (_is_fault(error) or isinstance(error, ValueError)):
            raise
        return Check(name, Status.FAILED, _line(error))


def _is_fault(error: Exception) -> bool:
    return isinstance(error, Disagrees | RowqError) or is_driver_error(error)


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
