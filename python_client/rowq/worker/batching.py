"""How many messages a thread takes at a time: one of slow handlers, many of fast ones.

A worker that takes ten slow messages at once handles them one after the other, while other workers
have nothing to do. One that takes single fast messages spends its time on calls. So a thread begins
with one message, and takes as many as it handles in about a tenth of a second. Messages of a claim
that turns out to be slow are given back, as long as no handler has begun with them.
"""

from collections.abc import Iterable

from rowq.messages import Maintained
from rowq.worker.handlers import OwnHandler

GIVE_BACK_SECONDS = 0.5
"""A claim that is older gives back the messages with which no handler has begun."""
TOGETHER = 10
"""A handler that gets a whole claim, or works on all of it at once, gets so many messages."""

_TARGET_SECONDS = 0.1
_LONGEST = 50
_GROWTH = 2

MAINTAIN_BATCH_SIZE = 1000


class BatchSize:
    """The size of the next claim of one thread."""

    def __init__(
        self, fixed: int | None, *, is_together: bool = False, handler: object = None
    ) -> None:
        """Take claims of `fixed` messages; None: of as many as the handler is fast.

        is_together: whether the messages of a claim are handled at the same time, or in one call.
        """
        self._is_adaptive = fixed is None and not is_together
        self._fitting = fixed or (TOGETHER if is_together else 1)
        self._own = handler if self._is_adaptive and isinstance(handler, OwnHandler) else None

    @property
    def value(self) -> int:
        """How many messages to ask for."""
        return max(self._fitting, self._least)

    @property
    def gives_back(self) -> bool:
        """Whether a slow claim gives back what no handler has begun with."""
        return self._is_adaptive and self._least == 1

    @property
    def _least(self) -> int:
        return self._own.least_batch() if self._own else 1

    def note(self, messages: int, seconds: float) -> None:
        """Learn from a claim of which so many messages were handled in so many seconds."""
        if self._is_adaptive and messages:
            fitting = int(_TARGET_SECONDS * messages / max(seconds, 1e-6))
            self._fitting = max(1, min(fitting, self._fitting * _GROWTH, _LONGEST))


def has_more(results: Iterable[Maintained]) -> bool:
    """Whether a call with MAINTAIN_BATCH_SIZE has probably left something to do."""
    return any(
        max(one.promoted, one.reaped, one.expired or 0, one.archived, one.purged)
        >= MAINTAIN_BATCH_SIZE
        for one in results
    )
