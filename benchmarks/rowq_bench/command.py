"""Measures rowq beside other queues, and writes the results, the report and the plots."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rowq_bench import systems
from benchmarks.rowq_bench.plots import draw_all
from benchmarks.rowq_bench.report import render
from benchmarks.rowq_bench.runner import POSTGRES, Engine, Plan, System, run_plan
from benchmarks.rowq_bench.scenarios import SCENARIOS, load_scenarios

_SET = "peers: beside other queues; profile: what each statement of a call costs"
ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "benchmarks"
SCRATCH = ROOT / ".local" / "benchmarks"


def main(words: list[str] | None = None) -> None:
    """Run the benchmarks and write what they found."""
    asked = _parser().parse_args(words)
    if asked.set != "own":
        {"peers": _peers_set, "profile": _profile_set}[asked.set](asked)
        return
    whole = not (asked.quick or asked.only)
    to = asked.to or (COMMITTED if whole else SCRATCH)
    engine = _engine(asked.engine)
    results = to / "results" / f"{asked.engine}.json"
    if not asked.report:
        scenarios = load_scenarios(quick=asked.quick, path=engine.scenarios)
        plan = Plan(
            engine=engine.engine,
            scenarios=[s for s in scenarios if s.name in (asked.only or [s.name])],
            peers=engine.peers(asked.pgmq_sql),
            url=asked.url,
            home=SCRATCH / "server",
            root=ROOT,
            command=_command(asked),
            note=asked.note,
        )
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(run_plan(plan), indent=1) + "\n", "utf-8")
    found = json.loads(results.read_text("utf-8"))
    (to / engine.report).write_text(engine.render(found), "utf-8")
    engine.draw(found, results.parent)
    print(f"Wrote {to / engine.report}")


def _peers_set(asked: argparse.Namespace) -> None:
    """Run other people's queues: a set with scenarios, programs and a report of its own."""
    # Only here: the other sets need none of the peers' packages.
    from benchmarks.rowq_bench.peers import command

    size = "quick" if asked.quick else "middle" if asked.middle else "full"
    whole = size != "quick" and not asked.only and not asked.peers
    to = asked.to or (COMMITTED if whole else SCRATCH)
    command.run_set(asked, size, to, SCRATCH / "server", _command(asked))


def _profile_set(asked: argparse.Namespace) -> None:
    """Run the profile of rowq's calls, which has a server with other settings and its own page."""
    from benchmarks.rowq_bench.profile.command import profile_set

    profile_set(
        quick=asked.quick,
        report=asked.report,
        to=asked.to or (SCRATCH if asked.quick else COMMITTED),
        home=SCRATCH / "profile",
        root=ROOT,
        command=_command(asked),
        note=asked.note,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """An engine with its scenarios, the systems besides its own, its report and its plots."""

    engine: Engine
    scenarios: Path
    peers: Callable[[Path | None], list[System]]
    report: str
    render: Callable[[dict[str, Any]], str]
    draw: Callable[[dict[str, Any], Path], None]


def _engine(name: str) -> _Choice:
    if name == "mariadb":
        # Only here: whoever measures PostgreSQL needs no driver and no server of another engine.
        from benchmarks.rowq_bench.mariadb import engine, plots, report

        return _Choice(
            engine.MARIADB,
            engine.SCENARIOS,
            lambda _: [],
            "RESULTS-mariadb.md",
            report.render,
            plots.draw,
        )
    return _Choice(POSTGRES, SCENARIOS, _peers, "RESULTS.md", render, draw_all)


def _peers(pgmq_sql: Path | None) -> list[System]:
    return [system for system in [systems.pgmq(pgmq_sql)] if system is not None]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    add = parser.add_argument
    add("--engine", choices=["postgres", "mariadb"], default="postgres")
    add("--set", choices=["own", "peers", "profile"], default="own", help=_SET)
    add("--peers", nargs="+", metavar="NAME", help="of the set peers only these, into .local")
    add("--middle", action="store_true", help="the set peers in 12 minutes instead of 25")
    add("--quick", action="store_true", help="small numbers, about a minute, into .local")
    add("--only", nargs="+", metavar="SCENARIO", help="only these scenarios, into .local")
    add("--pgmq-sql", type=Path, metavar="FILE", help="pgmq's SQL, instead of the package's")
    add("--url", help="a server of yours; by default a private one")
    add("--to", type=Path, metavar="DIRECTORY", help="write here instead")
    add("--note", default="", help="a sentence for the report, say on what else the machine did")
    add("--report", action="store_true", help="measure nothing, write the report anew")
    return parser


def _command(asked: argparse.Namespace) -> str:
    """Return the command that repeats this run; neither a URL nor a path is repeated."""
    words = ["make", "bench"]
    words += ["QUICK=1"] if asked.quick else []
    words += ["PGMQ_SQL=pgmq.sql"] if asked.pgmq_sql else []
    more = ["--engine", asked.engine] if asked.engine != "postgres" else []
    more += ["--set", asked.set] if asked.set != "own" else []
    more += ["--middle"] if asked.middle else []
    more += ["--peers", *asked.peers] if asked.peers else []
    more += ["--only", *asked.only] if asked.only else []
    more += ["--url", f"{asked.engine}://..."] if asked.url else []
    return shlex.join(words) + (f' ARGS="{" ".join(more)}"' if more else "")
