"""The summary of a run: outcomes per server, and skips by reason."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.helpers.together import SKIPPED_CASE

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
NO_SERVER = "no server"
MOST_REASONS = 20
"""Maximum number of listed reasons."""


class Summary:
    """The servers and outcomes of a run's processes."""

    def __init__(self) -> None:
        self._how: dict[str, str] = {}

    def record(self, used: Mapping[str, str], refused: Mapping[str, str]) -> None:
        """Add one process's servers, and why others did not run."""
        self._how |= {**used, **{name: f"not run: {why}" for name, why in refused.items()}}

    def lines(self, stats: Mapping[str, list[Any]], selection: str) -> Iterator[str]:
        """Yield the lines of the summary; stats are the reports of tests by outcome."""
        counts = _by_server(stats)
        for name in sorted(counts):
            how = self._how.get(name, "")
            tests = ", ".join(
                f"{counts[name][word]} {word}" for word in OUTCOMES if counts[name][word]
            )
            yield f"{name}{f' ({how})' if how else ''}: {tests}"
        yield from _skips("skipped", map(_reason, stats.get("skipped", [])))
        yield from _skips("cases skipped in tests that passed", _cases(stats.get("passed", [])))
        if selection != "named":
            more = "; make test-all runs more" if selection in {"test", "check"} else ""
            yield f"selection: {selection}, see tests/run/selection.py{more}"


def _by_server(stats: Mapping[str, list[Any]]) -> dict[str, Counter[str]]:
    """Return the number of tests by server and outcome."""
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, []):
            facts = dict(getattr(report, "user_properties", []))
            counts.setdefault(facts.get("server", NO_SERVER), Counter())[outcome] += 1
    return counts


def _skips(title: str, given: Iterable[str]) -> Iterator[str]:
    """Yield the number of skips for each reason, most frequent first."""
    reasons = Counter(given)
    if not reasons:
        return
    yield f"{title}: {reasons.total()}"
    for reason, count in reasons.most_common(MOST_REASONS):
        yield f"{count:6} {reason}"
    if len(reasons) > MOST_REASONS:
        yield f"   ... and {len(reasons) - MOST_REASONS} more reasons: see pytest -rs"


def _cases(reports: list[Any]) -> Iterator[str]:
    """Yield the reasons of skipped cases."""
    for report in reports:
        yield from (str(text) for name, text in report.user_properties if name == SKIPPED_CASE)


def _reason(report: Any) -> str:
    """Return the reason of a skip."""
    where = report.longrepr
    text = where[2] if isinstance(where, tuple) else str(where)
    return str(text).removeprefix("Skipped: ")
