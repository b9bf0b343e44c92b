"""The ratios that rowq sets out to reach on MariaDB; each is checked in every report."""

from collections.abc import Iterator

from benchmarks.harness.measure import Spread, spread
from benchmarks.harness.results import Results
from benchmarks.harness.targets import Target

PEERS = ("select_update", "update_limit")
_BATCHES = (1, 10, 100)


def check_targets(results: Results) -> list[Target]:
    """Return all targets with what was found."""
    return [*_against_better(results), *_deadlocks(results), *_under_view(results)]


def better(results: Results, scenario: str) -> Spread | None:
    """Return rowq's rate divided by that of the better of the others, round by round."""
    rates = [
        [figures["messages_per_second"] for figures in results.rounds(scenario, system)]
        for system in ("rowq", *PEERS)
        if system in results.systems(scenario)
    ]
    values = [own / max(others) for own, *others in zip(*rates, strict=False) if others]
    return spread(values) if values else None


def _against_better(results: Results) -> Iterator[Target]:
    found = better(results, "drain_10")
    yield Target("Drain in batches of 10: rate, rowq / the better of the two", 1.4, True, found)


def _deadlocks(results: Results) -> Iterator[Target]:
    for batch in _BATCHES:
        found = results.figure(f"drain_{batch}", "rowq", "deadlocks_reached")
        yield Target(f"Drain, batch {batch}: deadlocks that reached a caller", 0, False, found)


def _under_view(results: Results) -> Iterator[Target]:
    for key, words in (("", "median"), ("_mean", "mean")):
        found = results.within("flat", "rowq", f"dequeue_ms_end{key}", f"dequeue_ms_start{key}")
        what = f"Old read view: {words} time of a dequeue, end / start"
        yield Target(what, 1.5, False, found)
    held, free = (
        [figures["messages_per_second"] for figures in results.rounds(name, "rowq")]
        for name in ("flat", "flat_free")
    )
    values = [held_rate / free_rate for held_rate, free_rate in zip(held, free, strict=False)]
    yield Target(
        "Old read view: rate with it / without", 0.8, True, spread(values) if values else None
    )
