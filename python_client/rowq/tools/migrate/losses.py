"""What a rollback throws away."""

from dataclasses import dataclass

COUNTED = 100_000
"""No table is counted any further; the queries of each engine's module `status` say so, too."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What there is to lose.

    Attributes:
        queues: queues, with their settings.
        unfinished: messages that are ready, delayed, leased or dead.
        archived: finished messages that are kept.
    """

    queues: int = 0
    unfinished: int = 0
    archived: int = 0

    def __str__(self) -> str:
        """Say it in words."""
        queues = f"{_counted(self.queues)} queue{'' if self.queues == 1 else 's'}"
        unfinished, archived = _counted(self.unfinished), _counted(self.archived)
        return f"{queues}, {unfinished} unfinished and {archived} archived messages"


def _counted(count: int) -> str:
    return f"{count:,} or more" if count >= COUNTED else f"{count:,}"
