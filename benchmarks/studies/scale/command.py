"""`make bench ARGS="--set scale"`: measures many queues and many connections, writes the page."""

from pathlib import Path

from benchmarks.harness.results import write_results
from benchmarks.studies.pages import RESULTS, SCALE
from benchmarks.studies.scale.cluster import run_cluster
from benchmarks.studies.scale.run import ScalePlan, run_scale

_FULL = {"queues": (100, 10_000, 100_000), "calls": 50, "clients": 1_000, "messages": 20}
_QUICK = {"queues": (10, 200), "calls": 10, "clients": 30, "messages": 2}


def scale_set(
    *,
    quick: bool,
    to: Path,
    home: Path,
    root: Path,
    command: str,
    note: str,
    citus_url: str | None,
) -> None:
    """Measure, and write the page.

    to: where the page goes, with the results in a directory below. citus_url: the coordinator of a
    cluster; then only the part on a cluster is measured. The others: see ScalePlan.
    """
    size = _QUICK if quick else _FULL
    if citus_url is not None:
        words = {"home": home, "root": root, "command": command, "note": note}
        found = run_cluster(citus_url, int(size["calls"]), **words)  # type: ignore[call-overload,arg-type]
        write_results(to / RESULTS / "scale_citus.json", found)
        SCALE.write(to)
        print(f"Wrote {to / SCALE.file}")
        return
    plan = ScalePlan(**size, home=home, root=root, command=command, note=note)  # type: ignore[arg-type]
    write_results(to / RESULTS / "scale.json", run_scale(plan))
    SCALE.write(to)
    print(f"Wrote {to / SCALE.file}")
