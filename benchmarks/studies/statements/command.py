"""`make bench ARGS="--set statements"`: counts on one engine, and writes results and table."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness.host import commit_of
from benchmarks.harness.results import write_results
from benchmarks.studies.pages import RESULTS, STATEMENTS
from benchmarks.studies.statements.course import CALLS, CountPlan, run_counts
from benchmarks.studies.statements.path import count_text

BY_TEXT = ("sqlserver", "oracle")
"""Engines that are counted by the text of their SQL where no URL is given."""

# The two numbers are how often each call is counted, and messages in the queue.
_FULL, _QUICK = (25, 2000), (3, 500)


def statements_set(
    engine: str,
    url: str | None,
    *,
    quick: bool,
    to: Path,
    home: Path,
    root: Path,
    command: str,
    note: str,
) -> None:
    """Count, and write the table.

    to: where the README with the table goes, with the results in a directory below. The others:
    see CountPlan.
    """
    if engine in BY_TEXT and url is None:
        found = text_counts(engine, root, command, note)
    else:
        size = _QUICK if quick else _FULL
        found = run_counts(CountPlan(engine, url, home, root, command, note, *size))
    write_results(to / RESULTS / f"statements_{engine}.json", found)
    STATEMENTS.write(to)
    print(f"Wrote {to / STATEMENTS.file}")


def text_counts(engine: str, root: Path, command: str, note: str) -> dict[str, Any]:
    """Return what the text of an engine's SQL says as results: any batch takes the same way."""
    counts = count_text(engine)
    return {
        "commit": commit_of(root),
        "command": command,
        "note": note,
        "source": "text",
        "engine": engine,
        "calls": [{"call": name} | asdict(counts[name.partition("(")[0]]) for name in CALLS],
    }
