"""Small runs of the benchmarks."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.runner import Engine, Plan, run_plan
from benchmarks.harness.scenarios import Scenario

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(
    engine: Engine, scenarios: list[Scenario], home: Path, peers: Sequence[Any] = ()
) -> dict[str, Any]:
    """Run scenarios on a private server in a directory; return the results as in a file."""
    plan = Plan(
        engine,
        scenarios,
        list(peers),
        url=None,
        home=home,
        root=home,
        command="make bench",
        note="",
    )
    found: dict[str, Any] = json.loads(json.dumps(run_plan(plan)))
    return found
