"""What belongs to a short run, to a whole one, and to one that names its tests."""

import pytest

from tests.run.selection import (
    CHECKED,
    CI_ELSEWHERE,
    CI_LEAVES_OUT,
    CI_ON_MARIADB,
    CI_ON_POSTGRES,
    LONG,
    VERSIONS,
    favoured_by,
    is_selected,
    newest,
)
from tests.run.workers import FIRST
from tests.static.sources import ROOT

AT_HAND = ["postgres15", "postgres18", "mariadb10.11", "mariadb11.8", "sqlserver2022"]
CONTRACT = "tests/contract/test_enqueue.py::test_x[postgres18]"
CHAOS = "tests/chaos/test_disk_full.py::test_x[postgres18]"
CLIENT = "tests/client/test_queue.py::test_x[postgres18]"
STATIC = "tests/static/test_names.py::test_x"


def test_versions_are_compared_by_their_numbers() -> None:
    assert newest(["mariadb11.8", "mariadb10.11", "mariadb11.10", "postgres9"]) == {
        "mariadb11.10",
        "postgres9",
    }


def test_a_short_run_is_on_the_newest_servers_that_need_no_container_and_on_given_ones() -> None:
    assert favoured_by("short", AT_HAND, set(), is_asked=False) == {"postgres18", "mariadb11.8"}
    given = favoured_by("short", AT_HAND, {"sqlserver2022"}, is_asked=False)
    assert given == {"postgres18", "mariadb11.8", "sqlserver2022"}


def test_check_is_on_the_newest_postgresql_or_on_the_servers_that_it_is_asked_for() -> None:
    assert favoured_by("check", AT_HAND, set(), is_asked=False) == {"postgres18"}
    assert favoured_by("check", ["mariadb11.8"], set(), is_asked=True) == {"mariadb11.8"}


def test_a_short_run_is_on_the_servers_that_it_is_asked_for() -> None:
    assert favoured_by("short", ["postgres15"], set(), is_asked=True) == {"postgres15"}


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_whole_run_has_everything_on_the_newest_of_each_product(is_asked: bool) -> None:
    favoured = favoured_by("all", AT_HAND, set(), is_asked=is_asked)
    assert favoured == {"postgres18", "mariadb11.8", "sqlserver2022"}


def test_a_whole_run_has_of_mysql_what_may_differ_from_mariadb_if_that_is_there() -> None:
    both = ["mariadb10.11", "mariadb11.8", "mysql9.7"]
    assert favoured_by("all", both, set(), is_asked=True) == {"mariadb11.8"}
    assert favoured_by("all", ["mysql8.4", "mysql9.7"], set(), is_asked=True) == {"mysql9.7"}


@pytest.mark.parametrize(
    ("selection", "nodeid", "place", "expected"),
    [
        ("check", STATIC, None, True),
        ("check", CONTRACT, "postgres18", True),
        ("check", CONTRACT, "postgres15", False),
        ("check", CLIENT, "postgres18", False),
        ("short", STATIC, None, True),
        ("short", CONTRACT, "postgres18", True),
        ("short", CONTRACT, "postgres15", False),
        ("short", CHAOS, "postgres18", False),
        ("all", CHAOS, "postgres18", True),
        ("all", CONTRACT, "postgres15", True),
        ("all", CLIENT, "postgres15", False),
        ("named", CLIENT, "postgres15", True),
        ("named", CHAOS, "postgres15", True),
    ],
)
def test_a_test_belongs_to_a_selection(
    selection: str, nodeid: str, place: str | None, expected: bool
) -> None:
    assert is_selected(selection, nodeid, place, {"postgres18"}) is expected


@pytest.mark.parametrize(
    ("nodeid", "place", "expected"),
    [
        (STATIC, None, True),
        (CHAOS, "postgres18", True),
        (CONTRACT, "mariadb11.8", True),
        (CLIENT, "mariadb11.8", True),
        (CHAOS, "mariadb11.8", False),
        (
            "tests/chaos/test_server_killed.py::test_ten_sessions_x[mariadb11.8]",
            "mariadb11.8",
            True,
        ),
        ("tests/cli/test_work.py::test_x[mariadb11.8]", "mariadb11.8", False),
        ("tests/cli/test_migrate.py::test_x[mariadb11.8]", "mariadb11.8", True),
        ("tests/engine_only/postgres/test_plans.py::test_x[postgres15]", "postgres15", True),
        (CONTRACT, "postgres15", False),
        (CONTRACT, "mysql9.7", True),
        ("tests/contract/test_topics.py::test_x[mysql9.7]", "mysql9.7", False),
        (CLIENT, "mysql9.7", False),
        (CLIENT, "sqlserver2022", False),
    ],
)
def test_ci_has_the_most_on_postgresql_and_on_other_servers_what_may_differ(
    nodeid: str, place: str | None, expected: bool
) -> None:
    asked = favoured_by("ci", [*AT_HAND, "mysql9.7"], set(), is_asked=True)
    assert is_selected("ci", nodeid, place, asked - {"sqlserver2022"}) is expected


EVERY_LIST = [
    *CHECKED,
    *LONG,
    *VERSIONS,
    *CI_LEAVES_OUT,
    *CI_ON_MARIADB,
    *CI_ON_POSTGRES,
    *(begins for rooms in CI_ELSEWHERE.values() for begins in rooms),
]


@pytest.mark.parametrize("begins", EVERY_LIST)
def test_what_is_listed_exists(begins: str) -> None:
    path, _, name = begins.partition("::")
    assert list(ROOT.glob(f"{path}*"))
    if name:
        assert f"\ndef {name}" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("begins", FIRST)
def test_what_begins_first_exists(begins: str) -> None:
    assert list(ROOT.glob(f"{begins}*"))
