"""Growing delays, drawn at random so that clients do not all try again at the same moment."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays in seconds: each up to `factor` times the last, never above `cap`.

    Every delay is drawn between half of its nominal length and the whole of it.
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
        """Begin again with the first delay."""
        self._nominal = 0.0
