"""The selections of make check, make test, .ci/run and make test-all."""

from typing import Any

import pytest

from tests.run import slow
from tests.run.selection import CHECKED, VERSIONS, favored_by, is_selected, newest
from tests.run.workers import FIRST
from tests.static.each import for_each
from tests.static.sources import ROOT

AT_HAND = ["postgres15", "postgres18", "mariadb10.11", "mariadb11.8", "sqlserver2022"]
CONTRACT, CLI, STATIC = "tests/contract/test_x.py", "tests/cli/test_x.py", "tests/static/test_x.py"
SLOW: dict[str, dict[str, Any] | None] = {
    "quick": None,
    "slow": {},
    "slow, not in CI": {"ci": False},
    "slow, CI on both": {"ci": "mariadb"},
    "slow on mariadb": {"on": "mariadb"},
}


def test_versions_are_compared_by_their_numbers() -> None:
    assert newest(["mariadb11.8", "mariadb10.11", "mariadb11.10", "postgres9"]) == {
        "mariadb11.10",
        "postgres9",
    }


@pytest.mark.parametrize(
    ("selection", "chosen", "given", "is_asked", "favored"),
    [
        ("check", AT_HAND, "", False, "postgres18"),
        ("check", ["mariadb11.8"], "", True, "mariadb11.8"),
        ("test", AT_HAND, "", False, "postgres18 mariadb11.8"),
        ("test", AT_HAND, "sqlserver2022", False, "postgres18 mariadb11.8 sqlserver2022"),
        ("test", ["postgres15"], "", True, "postgres15"),
        ("ci", AT_HAND, "", False, "postgres18 mariadb11.8"),
        ("all", AT_HAND, "", False, "postgres18 mariadb11.8 sqlserver2022"),
        ("all", AT_HAND, "", True, "postgres18 mariadb11.8 sqlserver2022"),
        ("all", ["mariadb10.11", "mariadb11.8", "mysql9.7"], "", True, "mariadb11.8"),
        ("all", ["mysql8.4", "mysql9.7"], "", True, "mysql9.7"),
    ],
)
def test_favored_servers_run_all_folders(
    selection: str, chosen: list[str], given: str, is_asked: bool, favored: str
) -> None:
    found = favored_by(selection, chosen, set(given.split()), is_asked=is_asked)
    assert found == set(favored.split())


@pytest.mark.parametrize(
    ("selection", "path", "place", "taken"),
    [
        ("check", STATIC, None, "quick, slow on mariadb"),
        ("check", CONTRACT, "postgres18", "quick, slow on mariadb"),
        ("check", CONTRACT, "postgres15", ""),
        ("check", CLI, "postgres18", ""),
        ("test", CLI, "postgres18", "quick, slow on mariadb"),
        ("test", CLI, "mariadb11.8", "quick"),
        ("test", CONTRACT, "postgres15", ""),
        ("ci", STATIC, None, "quick, slow, slow, CI on both, slow on mariadb"),
        ("ci", CLI, "postgres18", "quick, slow, slow, CI on both, slow on mariadb"),
        ("ci", CLI, "mariadb11.8", "quick, slow, CI on both"),
        ("ci", CONTRACT, "postgres15", ""),
        ("all", CLI, "mariadb11.8", ", ".join(SLOW)),
        ("all", CONTRACT, "postgres15", ", ".join(SLOW)),
        ("all", CLI, "postgres15", ""),
        ("named", CLI, "postgres15", ", ".join(SLOW)),
    ],
)
def test_selection_includes_the_right_tests(
    selection: str, path: str, place: str | None, taken: str
) -> None:
    favored = {"postgres18", "mariadb11.8"}
    marks = {
        name: None if words is None else pytest.mark.slow("why", **words).mark
        for name, words in SLOW.items()
    }
    found = [
        name for name, mark in marks.items() if is_selected(selection, path, place, favored, mark)
    ]
    assert ", ".join(found) == taken


@for_each([*CHECKED, *VERSIONS, *FIRST])
def test_selection_lists_existing_files(begins: str) -> None:
    assert list(ROOT.glob(f"{begins}*"))


@for_each([*slow.SLOW, *slow.CORE])
def test_slow_marks_existing_files(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("tests/cli/test_doctor.py", "details of a command"),
        ("tests/cli/test_migrate.py", "installs again and again"),
        ("tests/client/test_queue.py", None),
        ("tests/contract/test_enqueue.py", None),
        ("sql/postgres/addons/citus/tests/test_install.py", "about an add-on"),
    ],
)
def test_slow_mark_comes_from_the_closest_path(path: str, why: str | None) -> None:
    found = slow.mark_of(path)
    assert (found and found.args[0]) == why
