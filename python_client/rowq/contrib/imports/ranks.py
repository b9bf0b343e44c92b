"""Priorities of queues in which more is sooner, as rowq's, in which 0 is first."""

from collections.abc import Iterable, Mapping

_USUAL = 5


def ranks(priorities: Iterable[int]) -> dict[int, int]:
    """Return rowq's priority for each: 0 is the usual 5, more is 4 to 0, less is 6 to 9, by rank.

    Where more than fit are there, neighbours share one.
    """
    found = sorted(set(priorities))
    above = [priority for priority in found if priority > 0]
    below = [priority for priority in reversed(found) if priority < 0]
    return (
        {0: _USUAL}
        | {priority: _USUAL - step for priority, step in _steps(above, _USUAL)}
        | {priority: _USUAL + step for priority, step in _steps(below, 9 - _USUAL)}
    )


def rank_of(priority: int, known: Mapping[int, int]) -> int:
    """Return rowq's priority for one of the others, or for the nearest if it came later."""
    return known[min(known, key=lambda other: abs(other - priority))]


def _steps(priorities: list[int], most: int) -> Iterable[tuple[int, int]]:
    """Yield each priority with a step from 1, the nearest to 0 first."""
    shared = max(len(priorities), most)
    return ((priority, place * most // shared + 1) for place, priority in enumerate(priorities))
