"""The target ratios of rowq on MariaDB; every report checks them."""

from collections.abc import Iterator

from benchmarks.harness.measure import Spread, Target, spread
from benchmarks.harness.results import Results
from benchmarks.studies.queues.targets import CPU, RATE

PEERS = ("select_update", "update_limit")
_LEAST = {1: 0.82, 10: 1.05, 100: 1.5}
"""Minimum of the better table's server CPU divided by rowq's, by batch size."""


def check_targets(results: Results) -> list[Target]:
    """Return all targets with their results."""
    return [
        *_against_better(results),
        *_in_one_call(results),
        *_deadlocks(results),
        *_under_view(results),
    ]


def _against_better(results: Results) -> Iterator[Target]:
    for batch, least in _LEAST.items():
        what = f"Drain, batch {batch}: server CPU of a cycle, the better of the two / rowq"
        yield Target(what, least, True, _cheaper(results, f"drain_{batch}"))


def _in_one_call(results: Results) -> Iterator[Target]:
    what = "Drain, batch 1, 1 session, complete_and_dequeue"
    rate, cpu = (
        results.between("combined_1", figure, "rowq", "skip_locked") for figure in (RATE, CPU)
    )
    yield Target(f"{what}: rate, rowq / skip_locked", 1.1, True, rate)
    yield Target(f"{what}: server CPU, rowq / skip_locked", 1.05, False, cpu)


def _cheaper(results: Results, scenario: str) -> Spread | None:
    """Return the better table's server CPU divided by rowq's, round by round."""
    costs = [
        [figures["server_cpu_us_per_message"] for figures in results.rounds(scenario, system)]
        for system in ("rowq", *PEERS)
        if system in results.systems(scenario)
    ]
    values = [min(others) / own for own, *others in zip(*costs, strict=False) if others and own]
    return spread(values) if values else None


def _deadlocks(results: Results) -> Iterator[Target]:
    counts = [
        figures["deadlocks_reached"]
        for batch in _LEAST
        for figures in results.rounds(f"drain_{batch}", "rowq")
    ]
    found = spread(counts) if counts else None
    yield Target("Drain, batch 1, 10, 100: deadlocks that reached a caller", 0, False, found)


def _under_view(results: Results) -> Iterator[Target]:
    found = results.within("flat", "rowq", "dequeue_ms_end", "dequeue_ms_start")
    yield Target("Old read view: median time of a dequeue, end / start", 1.5, False, found)
    held, free = (
        [figures["messages_per_second"] for figures in results.rounds(name, "rowq")]
        for name in ("flat", "flat_free")
    )
    values = [held_rate / free_rate for held_rate, free_rate in zip(held, free, strict=False)]
    yield Target(
        "Old read view: rate with it / without", 0.8, True, spread(values) if values else None
    )
