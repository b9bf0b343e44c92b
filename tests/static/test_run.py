"""The summary of a run, and skips for missing packages."""

import re
import tomllib
from types import SimpleNamespace
from typing import Any

import pytest

from tests.run.lacking import PACKAGES, REQUIRE_VARIABLE, lack_of
from tests.run.summary import Summary
from tests.static.sources import ROOT


def report(server: str | None = None, reason: str | None = None) -> Any:
    facts = [("server", server)] if server else []
    longrepr = ("file", 1, f"Skipped: {reason}") if reason else None
    return SimpleNamespace(user_properties=facts, longrepr=longrepr)


def test_summary_lists_servers_and_groups_skips() -> None:
    summary = Summary()
    summary.record({"postgres18": "local binaries 18.6"}, {"oracle23": "no Docker daemon"})
    stats = {
        "passed": [report("postgres18"), report("postgres18"), report()],
        "failed": [report("postgres18")],
        "skipped": [report("oracle23", "none"), report(reason="no fork"), report(reason="no fork")],
    }
    assert list(summary.lines(stats, "test")) == [
        "no server: 1 passed, 2 skipped",
        "oracle23 (not run: no Docker daemon): 1 skipped",
        "postgres18 (local binaries 18.6): 2 passed, 1 failed",
        "skipped: 3",
        "     2 no fork",
        "     1 none",
        "selection: test, see tests/run/selection.py; make test-all runs more",
    ]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ModuleNotFoundError("No module named 'django.db'", name="django.db"), "django"),
        (ImportError("libodbc.so.2: cannot open shared object file: No such file"), "libodbc.so"),
        (ModuleNotFoundError("No module named 'rowq.qeue'", name="rowq.qeue"), None),
        (ImportError("cannot import name 'x' from 'django'", name="django"), None),
        (ImportError("libssl.so.3: cannot open shared object file"), None),
        (ValueError("django"), None),
        (None, None),
    ],
)
def test_missing_package_of_make_install_is_a_skip(
    error: BaseException | None, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REQUIRE_VARIABLE, raising=False)
    lack = lack_of(error)
    assert (lack and lack.name) == name
    monkeypatch.setenv(REQUIRE_VARIABLE, "1")
    assert lack_of(error) is None


def test_packages_of_install_and_test_are_disjoint() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    names = {re.split(r"[\[<>=; ]", words)[0].replace("-", "_") for words in extras["test"]}
    assert names.isdisjoint(PACKAGES)
