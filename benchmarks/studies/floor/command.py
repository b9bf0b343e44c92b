"""`make bench ARGS="--set floor"`: measures the floor, and writes the results and the page."""

from pathlib import Path

from benchmarks.harness.results import write_results
from benchmarks.studies.floor.run import FloorPlan, run_floor
from benchmarks.studies.pages import FLOOR, RESULTS

# The three numbers are rounds, single calls of each kind in a turn, and calls of a batch in a turn.
_FULL, _QUICK = (60, 60, 6), (4, 10, 2)


def floor_set(*, quick: bool, to: Path, home: Path, root: Path, command: str, note: str) -> None:
    """Measure, and write the page.

    to: where the page goes, with the results in a directory below. The others: see FloorPlan.
    """
    plan = FloorPlan(*(_QUICK if quick else _FULL), home, root, command, note)
    write_results(to / RESULTS / "floor.json", run_floor(plan))
    FLOOR.write(to)
    print(f"Wrote {to / FLOOR.file}")
