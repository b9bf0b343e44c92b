"""The end of a run: what ran where and how it came out, and the skips by their reasons."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.helpers.together import SKIPPED_CASE

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
NO_SERVER = "no server"
MOST_REASONS = 20
"""So many reasons of skips fit on a screen with the rest."""


class Summary:
    """What the processes of a run have noted."""

    def __init__(self) -> None:
        self._how: dict[str, str] = {}

    def note(self, used: Mapping[str, str], refused: Mapping[str, str]) -> None:
        """Add how servers ran in one process, and why others did not."""
        self._how |= {**used, **{name: f"not run: {why}" for name, why in refused.items()}}

    def lines(self, stats: Mapping[str, list[Any]], selection: str) -> Iterator[str]:
        """Yield the lines of the report; stats are the reports of tests by outcome."""
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
    """Return how many tests came out how, by their server."""
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, []):
            facts = dict(getattr(report, "user_properties", []))
            counts.setdefault(facts.get("server", NO_SERVER), Counter())[outcome] += 1
    return counts


def _skips(title: str, given: Iterable[str]) -> Iterator[str]:
    """Yield how often something was skipped for each reason, the commonest first."""
    reasons = Counter(given)
    if not reasons:
        return
    yield f"{title}: {reasons.total()}"
    for reason, count in reasons.most_common(MOST_REASONS):
        yield f"{count:6} {reason}"
    if len(reasons) > MOST_REASONS:
        yield f"   ... and {len(reasons) - MOST_REASONS} reasons more: pytest -rs names them"


def _cases(reports: list[Any]) -> Iterator[str]:
    """Yield the reasons of the cases that tests have skipped."""
    for report in reports:
        yield from (str(text) for name, text in report.user_properties if name == SKIPPED_CASE)


def _reason(report: Any) -> str:
    """Return why a test was skipped, without pytest's own word."""
    where = report.longrepr
    text = where[2] if isinstance(where, tuple) else str(where)
    return str(text).removeprefix("Skipped: ")
