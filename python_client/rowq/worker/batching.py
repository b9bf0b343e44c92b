"""Batch size of a thread: one message for slow handlers, many for fast ones.

A worker that leases ten slow messages processes them in turn, while other workers are idle. A
worker that leases single fast messages spends its time on calls. So a thread starts with one
message, and then leases as many as it handles in about 0.1 seconds. If a claim turns out to be
slow, messages that no handler has started are released early.
"""

from collections.abc import Iterable

from rowq.messages import Maintained
from rowq.worker.handlers import OwnHandler

EARLY_RELEASE_SECONDS = 0.5
"""An older claim releases the messages that no handler has started."""
TOGETHER = 10
"""Batch size for handlers of a whole claim, and for concurrent handlers."""

_TARGET_SECONDS = 0.1
_LONGEST = 50
_GROWTH = 2

MAINTAIN_BATCH_SIZE = 1000


class BatchSize:
    """Size of the next claim of one thread."""

    def __init__(
        self, fixed: int | None, *, is_together: bool = False, handler: object = None
    ) -> None:
        """Lease `fixed` messages per claim; None: depending on the handler's speed.

        is_together: whether the messages of a claim are handled in parallel, or in one call.
        """
        self._is_adaptive = fixed is None and not is_together
        self._fitting = fixed or (TOGETHER if is_together else 1)
        self._own = handler if self._is_adaptive and isinstance(handler, OwnHandler) else None

    @property
    def value(self) -> int:
        """How many messages to lease."""
        return max(self._fitting, self._least)

    @property
    def releases_early(self) -> bool:
        """Whether a slow claim releases messages that no handler has started."""
        return self._is_adaptive and self._least == 1

    @property
    def _least(self) -> int:
        return self._own.least_batch() if self._own else 1

    def record(self, messages: int, seconds: float) -> None:
        """Record how many messages of a claim were handled in how many seconds."""
        if self._is_adaptive and messages:
            fitting = int(_TARGET_SECONDS * messages / max(seconds, 1e-6))
            self._fitting = max(1, min(fitting, self._fitting * _GROWTH, _LONGEST))


def has_more(results: Iterable[Maintained]) -> bool:
    """Whether a call with MAINTAIN_BATCH_SIZE has probably left work."""
    return any(
        max(one.promoted, one.reaped, one.expired or 0, one.archived, one.purged)
        >= MAINTAIN_BATCH_SIZE
        for one in results
    )
