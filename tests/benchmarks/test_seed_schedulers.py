"""Seed 004: the strategies execute each execution once, and the server counts what they sent."""

import multiprocessing
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from benchmarks.harness.team import Gate, Team, TeamError
from benchmarks.studies.seeds import seed_004
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.dialects import DIALECTS
from benchmarks.studies.seeds.seed_004.run import work_of
from benchmarks.studies.seeds.seed_004.server import Served, counting, read_served
from benchmarks.studies.seeds.seed_004.tally import Size, Tally

COUNT = 40
# The two threads of rowq complete so many messages before the clock runs.
WARMED_UP = 4
# At most so many statements open, warm up and observe the sessions.
AROUND = 40


def open_gate() -> Gate:
    """Return a gate for one process alone."""
    return Gate(multiprocessing.get_context("spawn").Barrier(1))


def run(name: str, engine: str, place: Callable[[Form], Any]) -> tuple[Tally, Served]:
    """Let one process of a form execute everything; return that, and what the server counted."""
    dialect = DIALECTS[engine]
    (form,) = (candidate for candidate in seed_004.SEED.forms(engine) if candidate.name == name)
    with (
        place(form) as url,
        form.open_client(url, 100) as control,
        dialect.open(url) as counter,
        counting(dialect, counter),
        dialect.observe(url) as observer,
    ):
        control.create()
        control.fill(COUNT)
        control.settle()
        before = read_served(dialect, counter)
        tally = work_of(dialect, url, name, Size(batch=10, threads=2, seconds=20), 1)(open_gate())
        observer.settle()
        after = read_served(dialect, counter)
    return tally, Served(after.statements - before.statements, after.commits - before.commits)


@pytest.mark.parametrize(
    "name",
    [
        "optimistic",
        pytest.param("lock_and_fetch", marks=pytest.mark.genuine),
        "rowq",
        "rowq_single",
    ],
)
def test_each_execution_is_executed_once(
    name: str, engine: str, place: Callable[[Form], Any]
) -> None:
    tally, _ = run(name, engine, place)
    expected = COUNT - (WARMED_UP if name.startswith("rowq") else 0)
    assert len(tally.handled) == len(set(tally.handled)) == expected


@pytest.mark.genuine
def test_the_optimistic_strategy_sends_a_pick_and_a_delete_for_each_execution(
    engine: str, place: Callable[[Form], Any]
) -> None:
    tally, served = run("optimistic", engine, place)
    sent = tally.fetches + 2 * COUNT + tally.misses
    assert sent <= served.statements <= sent + AROUND
    assert 2 * COUNT <= served.commits <= 2 * COUNT + AROUND


@pytest.mark.genuine
def test_completing_a_claim_in_one_call_takes_two_statements_a_batch(
    engine: str, place: Callable[[Form], Any]
) -> None:
    tally, served = run("rowq", engine, place)
    assert 2 * tally.fetches <= served.statements <= 2 * tally.fetches + AROUND
    assert served.commits < COUNT


def fail(gate: Gate) -> None:
    """Begin, and fail."""
    gate.wait()
    raise ValueError("a reason")


def test_a_process_that_fails_ends_the_run_with_its_reason() -> None:
    with pytest.raises(TeamError, match="ValueError: a reason"):
        Team([partial(fail)]).run(lambda: None)
