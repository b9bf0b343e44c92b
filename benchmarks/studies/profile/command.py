"""`make bench ARGS="--set profile"`: runs the profile, and writes the results and the page."""

from pathlib import Path

from benchmarks.harness.results import write_results
from benchmarks.studies.pages import PROFILE, RESULTS
from benchmarks.studies.profile.run import ProfilePlan, run_profile

# The three numbers are messages in batches, messages one by one, and rounds.
_FULL, _QUICK = (20000, 2000, 3), (1000, 100, 1)


def profile_set(*, quick: bool, to: Path, home: Path, root: Path, command: str, note: str) -> None:
    """Run the profile, and write its page.

    to: where the page goes, with the results in a directory below. The others: see ProfilePlan.
    """
    plan = ProfilePlan(*(_QUICK if quick else _FULL), home, root, command, note)
    write_results(to / RESULTS / "profile.json", run_profile(plan))
    PROFILE.write(to)
    print(f"Wrote {to / PROFILE.file}")
