"""The study of the floor measures every form, and its page says what its figures say."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.floor.forms import forms
from benchmarks.studies.floor.report import CYCLE, PUT, SINGLE, figures, render
from benchmarks.studies.floor.run import FloorPlan, run_floor
from tests.benchmarks.runs import BENCHMARKS

RESULTS = BENCHMARKS / "results" / "floor.json"


def given(rowq: float, rows: float, put: float, rows_put: float) -> dict[str, Any]:
    """Return the committed results with other figures: each call of pgmq costs 100."""
    data: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    costs = {"rowq": (rowq, put), "rowq_rows": (rows, rows_put)}
    turns = []
    for form in data["forms"]:
        one, many = costs.get(form["name"], (100.0, 100.0))
        turn = {"round": 1, "form": form["name"], PUT: many}
        turns.append(turn | dict.fromkeys(SINGLE, one))
    return data | {"rounds": turns}


def said(page: str, what: str) -> str:
    """Return what a page concludes of one kind of call."""
    (line,) = (line for line in page.splitlines() if line.startswith(f"**{what}"))
    return line


def test_every_form_of_every_call_is_measured_in_every_round(home: Path) -> None:
    plan = FloorPlan(2, 4, 1, home, home, "", "")
    data = json.loads(json.dumps(run_floor(plan)))
    costs = figures(data)
    for form in forms():
        for kind in (*SINGLE, CYCLE, PUT):
            assert len(costs[form.name, kind]) == plan.rounds
            assert min(costs[form.name, kind]) > 0
    assert costs["rowq", CYCLE][0] == sum(costs["rowq", kind][0] for kind in SINGLE)
    page = render(data)
    assert all(form.title in page for form in forms())


@pytest.mark.parametrize(
    ("rowq", "rows", "verdict"),
    [
        (79.0, 40.0, "the target is met"),
        (100.0, 88.0, "the target is out of reach in server CPU**, as the floor is 10% above it"),
        (100.0, 60.0, "if 20% of what rowq costs could go, which is 50% of all that is not rows"),
    ],
)
def test_the_page_says_of_a_target_what_the_figures_do(
    rowq: float, rows: float, verdict: str
) -> None:
    assert verdict in said(render(given(rowq, rows, 100.0, 100.0)), "One by one")


@pytest.mark.parametrize(
    ("rowq", "rows", "verdict"),
    [
        (100.0, 90.0, "the target is met"),
        (150.0, 110.0, "as the floor is 10% above it"),
        (150.0, 104.0, "the rows alone take all that the target leaves"),
        (150.0, 96.0, "the rows alone take all that the target leaves"),
        (125.0, 75.0, "if 20% of what rowq costs could go, which is 50% of all that is not rows"),
    ],
)
def test_putting_in_is_to_be_level(rowq: float, rows: float, verdict: str) -> None:
    assert verdict in said(render(given(10.0, 10.0, rowq, rows)), "Putting in")


def test_the_committed_page_is_of_a_whole_run() -> None:
    data = json.loads(RESULTS.read_text("utf-8"))
    assert (BENCHMARKS / "RESULTS-floor.md").read_text("utf-8") == render(data)
    assert "QUICK" not in data["command"]
    assert len(data["rounds"]) == data["settings"]["rounds"] * len(data["forms"])
