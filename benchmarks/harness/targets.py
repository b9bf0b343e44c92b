"""A ratio that a study sets out to reach."""

from dataclasses import dataclass

from benchmarks.harness.measure import Spread


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio and its bound.

    what: the ratio in words. at_least: whether the bound is the least allowed, else the most.
    found: rowq's ratio, None if it was not measured. peer: the same ratio of pgmq, if it has one.
    """

    what: str
    bound: float
    at_least: bool
    found: Spread | None
    peer: Spread | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the median keeps to the bound; None if it was not measured."""
        if self.found is None:
            return None
        if self.at_least:
            return self.found.median >= self.bound
        return self.found.median <= self.bound
