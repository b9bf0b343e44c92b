"""Growing random delays, so that clients do not all retry at the same time."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays in seconds: each up to `factor` times the last, at most `cap`.

    Each delay is random between 50% and 100% of its nominal length.
    """

    first: float
    cap: float
    factor: float = 2.0
    _nominal: float = field(default=0.0, init=False)

    def next(self) -> float:
        """Return the next delay in seconds."""
        self._nominal = min(self.cap, max(self.first, self._nominal * self.factor))
        return self._nominal * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Start over with the first delay."""
        self._nominal = 0.0
