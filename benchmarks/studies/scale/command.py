"""`make bench ARGS="--set scale"`: measures many queues and many connections, writes the page."""

from pathlib import Path

from benchmarks.harness.results import write_results
from benchmarks.studies.pages import RESULTS, SCALE
from benchmarks.studies.scale.run import ScalePlan, run_scale

_FULL = {"queues": (100, 10_000, 100_000), "calls": 50, "clients": 1_000, "messages": 20}
_QUICK = {"queues": (10, 200), "calls": 10, "clients": 30, "messages": 2}


def scale_set(*, quick: bool, to: Path, home: Path, root: Path, command: str, note: str) -> None:
    """Measure, and write the page.

    to: where the page goes, with the results in a directory below. The others: see ScalePlan.
    """
    size = _QUICK if quick else _FULL
    plan = ScalePlan(**size, home=home, root=root, command=command, note=note)  # type: ignore[arg-type]
    write_results(to / RESULTS / "scale.json", run_scale(plan))
    SCALE.write(to)
    print(f"Wrote {to / SCALE.file}")
