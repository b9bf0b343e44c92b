"""How tests are shared out to workers, and what the end of a run says."""

import re
import tomllib
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines.provide import Servers
from tests.run.lacking import PACKAGES, REQUIRE_VARIABLE, lack_of
from tests.run.summary import MOST_REASONS, Summary
from tests.run.workers import FileAndServerScheduling, printable, workers_for
from tests.static.sources import ROOT

FILE = "tests/contract/test_enqueue.py"
CONFIG: Any = SimpleNamespace(
    getvalue=lambda _: ["popen"], option=SimpleNamespace(tx=["popen"], loadscopereorder=False)
)


def report(server: str | None = None, reason: str | None = None) -> Any:
    facts = [("server", server)] if server else []
    longrepr = ("file", 1, f"Skipped: {reason}") if reason else None
    return SimpleNamespace(user_properties=facts, longrepr=longrepr)


def units(*nodeids: str, shared: frozenset[str] = frozenset()) -> set[str]:
    """Return the units into which tests fall; a worker runs all of one."""
    servers: Any = SimpleNamespace(names=Servers().names, shared=shared)
    scheduling = FileAndServerScheduling(CONFIG, None, servers)
    return {scheduling._split_scope(nodeid) for nodeid in nodeids}


def test_a_file_on_a_server_is_for_one_worker() -> None:
    assert len(units(f"{FILE}::test_x[postgres18]", f"{FILE}::test_y[a b-postgres18-None]")) == 1
    assert len(units(f"{FILE}::test_x[postgres18]", f"{FILE}::test_x[mariadb11.8]")) == 2
    assert len(units(f"{FILE}::test_x[postgres18]", "tests/cli/x.py::test_x[postgres18]")) == 2
    assert len(units("tests/static/a.py::test_x", "tests/static/b.py::test_x")) == 2


def test_a_server_that_workers_share_is_for_one_of_them() -> None:
    nodeids = [f"{FILE}::test_x[sqlserver2022]", "tests/cli/x.py::test_x[sqlserver2022-1]"]
    assert len(units(*nodeids, shared=frozenset({"sqlserver2022"}))) == 1


def test_there_are_more_workers_than_processors() -> None:
    assert workers_for(2) == 4


def test_half_a_character_in_a_report_reaches_the_process_that_prints_it() -> None:
    data = {"sections": [("log", "\ud800 and é")], "outcome": "passed", "duration": 1.5}
    assert printable(data) == {**data, "sections": [("log", "\\ud800 and é")]}


def test_the_end_says_what_ran_where_and_groups_skips_by_their_reason() -> None:
    summary = Summary()
    summary.note({"postgres18": "local binaries 18.6"}, {"oracle23": "no Docker daemon"})
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


def test_many_reasons_do_not_fill_more_than_a_screen() -> None:
    skipped = [report(reason=f"reason {number}") for number in range(MOST_REASONS + 5)]
    lines = list(Summary().lines({"skipped": skipped}, "all"))
    assert len(lines) == MOST_REASONS + 4
    assert "5 reasons more" in lines[-2]


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
def test_import_that_lacks_a_package_of_make_install_is_a_skip(
    error: BaseException | None, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REQUIRE_VARIABLE, raising=False)
    lack = lack_of(error)
    assert (lack and lack.name) == name
    monkeypatch.setenv(REQUIRE_VARIABLE, "1")
    assert lack_of(error) is None


def test_packages_of_make_install_are_not_those_of_make_test() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    names = {re.split(r"[\[<>=; ]", words)[0].replace("-", "_") for words in extras["test"]}
    assert names.isdisjoint(PACKAGES)
