"""How much one call of maintain does, and whether the next one is to follow at once."""

from collections.abc import Iterable

from rowq.messages import Maintained

MAINTAIN_BATCH_SIZE = 1000


def has_more(results: Iterable[Maintained]) -> bool:
    """Whether a call with MAINTAIN_BATCH_SIZE has probably left something to do."""
    return any(
        max(one.promoted, one.reaped, one.expired or 0, one.archived, one.purged)
        >= MAINTAIN_BATCH_SIZE
        for one in results
    )
