"""Measures rowq beside other queues, or beside another commit, and writes results and page."""

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
    "queues: beside pgmq, or two usual tables; seeds: beside the forms rowq comes from; "
    "peers: beside other queues"
)
ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "benchmarks"
SCRATCH = ROOT / ".local" / "benchmarks"

NAME = "rowq_before"
_MIGRATE = "import sys; from rowq.tools.migrate import migrate; migrate(sys.argv[1])"
_FIGURES = {
    "messages_per_second": "rate",
    "wal_bytes_per_message": "log",
    "server_cpu_us_per_message": "server's CPU",
}


def main(words: list[str] | None = None) -> None:
    """Run the benchmarks and write what they found."""
    parser = _parser()
    asked = parser.parse_args(words)
    if fault := _fault(asked):
        parser.error(fault)
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
    """Run other people's queues: a set with scenarios, programs and a report of its own."""
    # Import it here and not at the top, because the other sets need none of the peers' packages.
    from benchmarks.studies.peers import command

    size = "quick" if asked.quick else "middle" if asked.middle else "full"
    whole = asked.again or not (size == "quick" or asked.only or asked.peers)
    to = asked.to or (COMMITTED if whole else SCRATCH)
    command.run_set(asked, size, to, SCRATCH / "server", _command(asked))


@dataclass(frozen=True, slots=True)
class _Choice:
    """A choice of what to run: an engine, scenarios, and systems besides its own.

    name: of the file of results. scenarios: takes whether they are to be quick.
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
    add("--peers", nargs="+", metavar="NAME", help="of the set peers only these, into .local")
    add("--again", action="store_true", help="of the set peers --only these, into its results")
    add("--middle", action="store_true", help="the set peers in 12 minutes instead of 25")
    add("--quick", action="store_true", help="small numbers, about a minute, into .local")
    add("--only", nargs="+", metavar="SCENARIO", help="only these scenarios, into .local")
    add("--rounds", type=int, metavar="N", help="so many of each scenario, into .local")
    add("--before", metavar="COMMIT", help="of the set queues rowq beside rowq of a commit only")
    add("--pgmq-sql", type=Path, metavar="FILE", help="pgmq's SQL, instead of the package's")
    add("--url", help="a server of yours; by default a private one")
    add("--to", type=Path, metavar="DIRECTORY", help="write here instead")
    add("--note", default="", help="a sentence for the report, say on what else the machine did")
    return parser


def _fault(asked: argparse.Namespace) -> str | None:
    """Return why that cannot be run, or None."""
    if asked.before and asked.set != "queues":
        return "--before goes with the set queues"
    if asked.rounds is not None and (asked.rounds < 1 or asked.set not in ("queues", "seeds")):
        return "--rounds takes a number from 1, and goes with the sets queues and seeds"
    return None


def _command(asked: argparse.Namespace) -> str:
    """Return the command that repeats this run; neither a URL nor a path is repeated."""
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

    Args:
        rowq: the system that is rowq as it is now; the calls and their client stay the same.
        root: the checkout.
        commit: whatever git knows as one.
        to: a directory for the files of that commit, which is emptied first.
    """
    return replace(
        rowq, name=NAME, version="", origin=f"commit {commit}", install=_installer(root, commit, to)
    )


def beside(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios with both systems and no other one."""
    return [replace(scenario, systems=["rowq", NAME]) for scenario in scenarios]


def ratios(data: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each scenario and figure: what rowq has for one of rowq_before."""
    results = Results(data)
    for scenario in results.scenarios:
        known = results.rounds(scenario, NAME)[0]
        for figure, word in _FIGURES.items():
            if figure in known:
                found = results.between(scenario, figure, "rowq", NAME)
                yield f"{scenario}: {word}, rowq / {NAME}: {spread_text(found)}"


def _installer(root: Path, commit: str, to: Path) -> Callable[[str], object]:
    command = ["git", "-C", str(root), "archive", commit, "python_client", "sql", "migrations"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    # Remove what another run has left, so that files of two commits are never mixed.
    shutil.rmtree(to, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(to, filter="data")
    environment = os.environ | {"PYTHONPATH": str(to / "python_client")}

    def install(url: str) -> None:
        subprocess.run([sys.executable, "-c", _MIGRATE, url], check=True, env=environment, cwd=to)

    return install
