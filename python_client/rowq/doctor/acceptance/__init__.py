"""What `rowq doctor --deep` does: messages in a queue of its own are held against the contract.

It is for the servers that are out of reach of the contract's tests: a DBA's own.
"""

from collections.abc import Callable, Iterator

from rowq.doctor.acceptance import interleaved, sequential
from rowq.doctor.acceptance.two_sessions import Disagrees, TwoSessions
from rowq.doctor.check import Check, Status
from rowq.engines import is_driver_error
from rowq.errors import RowqError

STEPS: tuple[Callable[[TwoSessions], str], ...] = (
    sequential.the_order,
    sequential.what_is_in_them,
    sequential.attempts,
    sequential.times_and_keys,
    sequential.the_switch,
    sequential.the_archive,
    sequential.refusals,
    interleaved.disjoint_batches,
    interleaved.rollback_leaves_nothing,
    interleaved.stale_claims,
    interleaved.one_housekeeper,
    interleaved.waiting,
)
"""What is tried, each with an empty queue; returns what was seen, raises Disagrees."""


def accept(url: str) -> Iterator[Check]:
    """Yield a check for each step; the queue is dropped at the end, however that comes.

    Raises:
        CannotConnect: the database could not be reached.
    """
    try:
        with TwoSessions(url) as two:
            for step in STEPS:
                check = _try(step, two)
                yield check
                if check.status is Status.FAILED:
                    # What a failed step has left behind must not spoil the next one.
                    two.drop_queue()
                    two.create_queue()
    except Exception as error:
        if not _is_fault(error):
            raise
        yield Check("deep: queue", Status.FAILED, _line(error))
    else:
        yield Check("deep: queue", Status.OK, "was made, and dropped with everything in it")


def _try(step: Callable[[TwoSessions], str], two: TwoSessions) -> Check:
    name = f"deep: {step.__name__.replace('_', ' ')}"
    try:
        return Check(name, Status.OK, step(two))
    except Exception as error:
        if not (_is_fault(error) or isinstance(error, ValueError)):
            raise
        return Check(name, Status.FAILED, _line(error))


def _is_fault(error: Exception) -> bool:
    return isinstance(error, Disagrees | RowqError) or is_driver_error(error)


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
