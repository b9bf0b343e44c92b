"""What a run executes: the one place that says which tests are long, and where versions matter.

    short    what a newcomer needs: everything but LONG, on the newest version of each product
    long     what the short one leaves out: LONG, and older versions in the rooms of VERSIONS
    all      every test on every version

Without a word about it, a run that names no tests is a short one, and one that does is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

SELECTIONS = ("short", "long", "all")

LONG = (
    "tests/benchmarks/",
    "tests/chaos/",
    "tests/cli/test_enqueue_file.py::test_seventy_thousand_rows_go_in_within_seconds",
    "tests/client/test_worker_processes.py::test_a_child_that_dies_while_the_database_is_away",
    "tests/concurrency/test_against_reference.py",
    "tests/concurrency/test_many_sessions.py",
    "tests/contract/test_cancel.py::test_ten_thousand_messages_are_withdrawn_at_once",
    "tests/demo/",
)
"""Beginnings of the node ids of tests that take long, or kill what they can."""

VERSIONS = (
    "tests/contract/",
    "tests/engine_only/",
    "tests/interleavings/",
    "tests/migrations/",
    "tests/security/",
)
"""Rooms whose tests may come out otherwise on an older version of an engine."""


def selection_of(config: pytest.Config) -> str:
    """Return which of the selections a run is."""
    given: str | None = config.getoption("--selection")
    option = config.option
    is_named = config.args_source is config.ArgsSource.ARGS or option.keyword or option.markexpr
    return given or ("all" if is_named else "short")


def newest(names: Iterable[str]) -> set[str]:
    """Return the newest server of each product, such as mariadb11.8."""
    found: dict[str, tuple[list[int], str]] = {}
    for name in names:
        product, version = re.fullmatch(r"(\D*)([\d.]*)", name).groups()  # type: ignore[union-attr]
        numbers = [int(number) for number in version.split(".") if number]
        found[product] = max(found.get(product, ([], name)), (numbers, name))
    return {name for _, name in found.values()}


def is_long(nodeid: str) -> bool:
    """Return whether a test is one of LONG."""
    return nodeid.startswith(LONG)


def is_selected(selection: str, nodeid: str, *, older: bool) -> bool:
    """Return whether a test belongs to a selection; `older` is one on an older version."""
    match selection:
        case "short":
            return not older and not is_long(nodeid)
        case "long":
            return is_long(nodeid) or (older and nodeid.startswith(VERSIONS))
    return True
