"""Compare rowq with other queues, or with another commit, and write the results."""

import argparse
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.harness.report import spread_text
from benchmarks.harness.results import Results, write_results
from benchmarks.harness.runner import Engine, Plan, System, run_plan
from benchmarks.harness.scenarios import Scenario, load_scenarios
from benchmarks.studies.page import PAGE, RESULTS, write
from benchmarks.studies.queues import systems
from benchmarks.studies.queues.engine import POSTGRES
from benchmarks.studies.queues_mariadb import engine as mariadb
from benchmarks.studies.seeds.report import seeds_engine, seeds_scenarios

_SETS = ("queues", "seeds", "peers")
_SET = (
    "queues: pgmq, or two usual queue tables; seeds: forms of queues in SQL; "
    "peers: other queues with their own clients"
)
ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "benchmarks"
SCRATCH = ROOT / ".local" / "benchmarks"

NAME = "rowq_before"
_BOTH = ("rowq", NAME)
_MIGRATE = "import sys; from rowq.tools.migrate import migrate; migrate(sys.argv[1])"
_FIGURES = {
    "messages_per_second": "rate",
    "wal_bytes_per_message": "log",
    "server_cpu_us_per_message": "server's CPU",
    "ms": "milliseconds of a call",
    "ms_worst": "milliseconds of the worst call",
    "server_cpu_ms": "server's CPU of a call",
    "server_cpu_ms_worst": "server's CPU of the worst call",
}


def main(words: list[str] | None = None) -> None:
    """Run the benchmarks and write the results."""
    parser = _parser()
    asked = parser.parse_args(words)
    if message := _usage_error(asked):
        parser.error(message)
    if asked.set == "peers":
        _peers_set(asked)
        return
    whole = not (asked.quick or asked.only or asked.before or asked.rounds)
    to = asked.to or (COMMITTED if whole else SCRATCH)
    engine = _seeds(asked.engine) if asked.set == "seeds" else _engine(asked.engine)
    scenarios = [s for s in engine.scenarios(asked.quick) if s.name in (asked.only or [s.name])]
    peers = engine.peers(asked.pgmq_sql)
    if asked.before:
        (own, *_) = engine.engine.systems()
        peers = [rowq_before(own, ROOT, asked.before, SCRATCH / "before")]
        scenarios = beside(scenarios)
    if asked.rounds:
        scenarios = [replace(scenario, rounds=asked.rounds) for scenario in scenarios]
    plan = Plan(
        engine=engine.engine,
        scenarios=scenarios,
        peers=peers,
        url=asked.url,
        home=SCRATCH / "server",
        root=ROOT,
        command=_command(asked),
        note=asked.note,
    )
    found = run_plan(plan)
    if asked.before:
        write_results(to / f"before_{engine.name}.json", found)
        print(*ratios(found), sep="\n")
        return
    write_results(to / RESULTS / f"{engine.name}.json", found)
    write(to)
    print(f"Wrote {to / PAGE}")


def _peers_set(asked: argparse.Namespace) -> None:
    """Run the set peers, which has its own scenarios, programs and report."""
    # Import here: the other sets do not need the peers' packages.
    from benchmarks.studies.peers import command

    size = "quick" if asked.quick else "middle" if asked.middle else "full"
    whole = asked.again or not (size == "quick" or asked.only or asked.peers)
    to = asked.to or (COMMITTED if whole else SCRATCH)
    command.run_set(asked, size, to, SCRATCH / "server", _command(asked))


@dataclass(frozen=True, slots=True)
class _Choice:
    """An engine, its scenarios, and further systems to run.

    name: of the file of results. scenarios: takes whether the run is quick.
    """

    name: str
    engine: Engine
    scenarios: Callable[[bool], list[Scenario]]
    peers: Callable[[Path | None], list[System]]


def _engine(name: str) -> _Choice:
    if name == "mariadb":
        return _Choice(
            name,
            mariadb.MARIADB,
            lambda quick: load_scenarios(quick=quick, path=mariadb.SCENARIOS),
            lambda _: [],
        )
    return _Choice(name, POSTGRES, lambda quick: load_scenarios(quick=quick), _peers)


def _seeds(name: str) -> _Choice:
    return _Choice(
        f"seeds_{name}",
        seeds_engine(name),
        lambda quick: seeds_scenarios(name, quick=quick),
        lambda _: [],
    )


def _peers(pgmq_sql: Path | None) -> list[System]:
    return [system for system in [systems.pgmq(pgmq_sql)] if system is not None]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    add = parser.add_argument
    add("--engine", choices=["postgres", "mariadb"], default="postgres")
    add("--set", choices=_SETS, default="queues", help=_SET)
    add(
        "--peers",
        nargs="+",
        metavar="NAME",
        help="run only these systems of the set peers; write to .local",
    )
    add(
        "--again",
        action="store_true",
        help="with --set peers --only: replace these scenarios in its results",
    )
    add("--middle", action="store_true", help="run the set peers in 12 minutes instead of 25")
    add(
        "--quick",
        action="store_true",
        help="run small scenarios in about two minutes; write to .local",
    )
    add("--only", nargs="+", metavar="SCENARIO", help="run only these scenarios; write to .local")
    add("--rounds", type=int, metavar="N", help="rounds of each scenario; write to .local")
    add("--before", metavar="COMMIT", help="compare rowq with rowq of a commit, in the set queues")
    add("--pgmq-sql", type=Path, metavar="FILE", help="SQL of pgmq; default: from its package")
    add("--url", help="URL of the server; default: a private one")
    add("--to", type=Path, metavar="DIRECTORY", help="directory to write to")
    add("--note", default="", help="a sentence for the report, for example about other load")
    return parser


def _usage_error(asked: argparse.Namespace) -> str | None:
    """Return an error if the options are incompatible, or None."""
    if asked.before and asked.set != "queues":
        return "--before requires --set queues"
    if asked.rounds is not None and (asked.rounds < 1 or asked.set not in ("queues", "seeds")):
        return "--rounds expects a number from 1 and requires --set queues or seeds"
    return None


def _command(asked: argparse.Namespace) -> str:
    """Return the command that repeats this run, without URLs and paths."""
    words = ["make", "bench"]
    words += ["QUICK=1"] if asked.quick else []
    words += ["PGMQ_SQL=pgmq.sql"] if asked.pgmq_sql else []
    more = ["--set", asked.set] if asked.set != "queues" else []
    more += ["--engine", asked.engine] if asked.engine != "postgres" else []
    more += ["--middle"] if asked.middle else []
    more += ["--again"] if asked.again else []
    more += ["--peers", *asked.peers] if asked.peers else []
    more += ["--only", *asked.only] if asked.only else []
    more += ["--rounds", str(asked.rounds)] if asked.rounds else []
    more += ["--before", asked.before] if asked.before else []
    more += ["--url", f"{asked.engine}://..."] if asked.url else []
    return shlex.join(words) + (f' ARGS="{" ".join(more)}"' if more else "")


def rowq_before(rowq: Any, root: Path, commit: str, to: Path) -> Any:
    """Return a system that is rowq at a commit.

    rowq: the current rowq, for its statements and client. root: the checkout. commit: a git
    revision. to: a directory for the files of that commit; emptied first.
    """
    return replace(
        rowq, name=NAME, version="", origin=f"commit {commit}", install=_installer(root, commit, to)
    )


def beside(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios with rowq and rowq_before only."""
    return [replace(scenario, systems=[*_BOTH]) for scenario in scenarios]


def ratios(data: dict[str, Any]) -> Iterator[str]:
    """Yield a line per scenario and figure: rowq's divided by rowq_before's.

    A line reports a commit without complete_and_dequeue.
    """
    results = Results(data)
    for scenario in results.scenarios:
        figures = results.rounds(scenario, NAME)[0]
        calls = {name: results.rounds(scenario, name)[0].get("calls", 0) for name in _BOTH}
        if calls["rowq"] != calls[NAME]:
            lacking = max(calls, key=lambda name: calls[name])
            yield f"{scenario}: {lacking} lacks complete_and_dequeue: it completes, then dequeues"
        for figure, word in _FIGURES.items():
            if figure in figures:
                found = results.between(scenario, figure, "rowq", NAME)
                yield f"{scenario}: {word}, rowq / {NAME}: {spread_text(found)}"


def _installer(root: Path, commit: str, to: Path) -> Callable[[str], object]:
    command = ["git", "-C", str(root), "archive", commit, "python_client", "sql", "migrations"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    # Never mix the files of two commits.
    shutil.rmtree(to, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(to, filter="data")
    environment = os.environ | {"PYTHONPATH": str(to / "python_client")}

    def install(url: str) -> None:
        subprocess.run([sys.executable, "-c", _MIGRATE, url], check=True, env=environment, cwd=to)

    return install
