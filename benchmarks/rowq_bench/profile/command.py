"""`make bench ARGS="--set profile"`: runs the profile, and writes the results and the page."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.rowq_bench.profile.report import render
from benchmarks.rowq_bench.profile.run import ProfilePlan, run_profile

# Messages in batches, one by one, rounds.
_FULL, _QUICK = (20000, 2000, 3), (1000, 100, 1)


def profile_set(
    *, quick: bool, report: bool, to: Path, home: Path, root: Path, command: str, note: str
) -> None:
    """Run the profile, or with report only write the page anew from the results.

    to: where the page goes, with the results in a directory below. The others: see ProfilePlan.
    """
    results = to / "results" / "profile.json"
    if not report:
        plan = ProfilePlan(*(_QUICK if quick else _FULL), home, root, command, note)
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(run_profile(plan), indent=1) + "\n", "utf-8")
    page = to / "RESULTS-profile.md"
    page.write_text(render(json.loads(results.read_text("utf-8"))), "utf-8")
    print(f"Wrote {page}")
