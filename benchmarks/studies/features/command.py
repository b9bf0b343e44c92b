"""`make bench ARGS="--set features"`: measures, and writes the results and the page."""

from pathlib import Path

from benchmarks.harness.results import write_results
from benchmarks.studies.features.idle import IdlePlan
from benchmarks.studies.features.run import FeaturesPlan, run_features, run_idle
from benchmarks.studies.pages import FEATURES, RESULTS

# The numbers are rounds and messages of a turn, and those of the idle houses.
_FULL = (20, 200, IdlePlan(10, 0.3, 10))
_QUICK = (2, 100, IdlePlan(2, 0.05, 2))


def features_set(
    engine: str, *, quick: bool, to: Path, home: Path, root: Path, command: str, note: str
) -> None:
    """Measure, and write the page; on MariaDB the idle houses only.

    to: where the page goes, with the results in a directory below. The others: see FeaturesPlan.
    """
    plan = FeaturesPlan(*(_QUICK if quick else _FULL), home, root, command, note)
    name, run = {
        "postgres": ("features", run_features),
        "mariadb": ("features_mariadb", run_idle),
    }[engine]
    write_results(to / RESULTS / f"{name}.json", run(plan))
    FEATURES.write(to)
    print(f"Wrote {to / FEATURES.file}")
