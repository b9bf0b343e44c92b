"""Measures rowq beside other queues, and writes the results, the report and the plots."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from benchmarks.rowq_bench import systems
from benchmarks.rowq_bench.plots import draw_all
from benchmarks.rowq_bench.report import render
from benchmarks.rowq_bench.runner import Plan, run_plan
from benchmarks.rowq_bench.scenarios import load_scenarios

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "benchmarks"
SCRATCH = ROOT / ".local" / "benchmarks"


def main(words: list[str] | None = None) -> None:
    """Run the benchmarks and write what they found."""
    asked = _parser().parse_args(words)
    whole = not (asked.quick or asked.only)
    to = asked.to or (COMMITTED if whole else SCRATCH)
    results = to / "results" / "postgres.json"
    if not asked.report:
        scenarios = load_scenarios(quick=asked.quick)
        plan = Plan(
            scenarios=[s for s in scenarios if s.name in (asked.only or [s.name])],
            peers=[system for system in [systems.pgmq(asked.pgmq_sql)] if system is not None],
            url=asked.url,
            home=SCRATCH / "server",
            root=ROOT,
            command=_command(asked),
            note=asked.note,
        )
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(run_plan(plan), indent=1) + "\n", "utf-8")
    found = json.loads(results.read_text("utf-8"))
    (to / "RESULTS.md").write_text(render(found), "utf-8")
    draw_all(found, results.parent)
    print(f"Wrote {to / 'RESULTS.md'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="small numbers, about a minute, into .local")
    add("--only", nargs="+", metavar="SCENARIO", help="only these scenarios, into .local")
    add("--pgmq-sql", type=Path, metavar="FILE", help="pgmq's SQL, instead of the package's")
    add("--url", help="a server of yours; by default a private PostgreSQL 18")
    add("--to", type=Path, metavar="DIRECTORY", help="write here instead")
    add("--note", default="", help="a sentence for the report, say on what else the machine did")
    add("--report", action="store_true", help="measure nothing, write the report anew")
    return parser


def _command(asked: argparse.Namespace) -> str:
    """Return the command that repeats this run; neither a URL nor a path is repeated."""
    words = ["make", "bench"]
    words += ["QUICK=1"] if asked.quick else []
    words += ["PGMQ_SQL=pgmq.sql"] if asked.pgmq_sql else []
    more = ["--only", *asked.only] if asked.only else []
    more += ["--url", "postgresql://..."] if asked.url else []
    return shlex.join(words) + (f' ARGS="{" ".join(more)}"' if more else "")
