"""Selections of tests, by the marker `slow` and the available servers.

    check    CHECKED without slow tests, on the newest PostgreSQL
    test     all except slow tests, on the newest PostgreSQL and MariaDB, and servers at a URL
    ci       `test`, and the slow tests for .ci/run
    all      everything on the newest version of each product, and VERSIONS on older ones, and on a
             product with the same SQL as another one of the run
    named    the tests on the command line, on every chosen server

The default is `named` if the command line names tests, else `test`. Mark a test, its file as
`pytestmark`, or its directory in slow.py:

    @pytest.mark.slow("kills a server")                     # for make test-all and .ci/run
    @pytest.mark.slow("kills a server", ci="mariadb")       # .ci/run: also on MariaDB
    @pytest.mark.slow("ten minutes", ci=False)              # for make test-all
    @pytest.mark.slow("about the command", on="mariadb")    # slow there only
"""

import re
from collections.abc import Iterable

import pytest

SELECTIONS = ("check", "test", "ci", "all", "named")

CHECKED = ("tests/static/", "tests/contract/", "tests/client/")
"""The tests of `make check`: static, contract and client."""

AT_FIRST = ("postgres", "mariadb")
"""The products of `make test`, which need no container."""

SAME_SQL = {"mysql": "mariadb"}
"""Products with the same SQL files as another one."""

VERSIONS = (
    "sql/postgres/addons/",
    "tests/chaos/test_migration_under_load.py",
    "tests/contract/",
    "tests/costs/",
    "tests/engine_only/",
    "tests/interleavings/",
    "tests/migrations/",
    "tests/security/",
)
"""Tests whose result may differ on older versions and on products of SAME_SQL."""


def selection_of(config: pytest.Config) -> str:
    """Return the selection of a run."""
    given: str | None = config.getoption("--selection")
    option = config.option
    is_named = config.args_source is config.ArgsSource.ARGS or option.keyword or option.markexpr
    return given or ("named" if is_named else "test")


def product_of(name: str) -> str:
    """Return the product of a server, such as mysql of mysql9.7."""
    return name.rstrip(".0123456789")


def newest(names: Iterable[str]) -> set[str]:
    """Return the newest server of each product, such as mariadb11.8."""
    found: dict[str, tuple[list[int], str]] = {}
    for name in names:
        product, version = re.fullmatch(r"(\D*)([\d.]*)", name).groups()  # type: ignore[union-attr]
        numbers = [int(number) for number in version.split(".") if number]
        found[product] = max(found.get(product, ([], name)), (numbers, name))
    return {name for _, name in found.values()}


def may_select(selection: str, path: str, *, is_favored: bool) -> bool:
    """Return whether a selection may include a file or its tests; see is_selected."""
    match selection:
        case "check":
            return is_favored and path.startswith(CHECKED)
        case "test" | "ci":
            return is_favored
        case "all":
            return is_favored or path.startswith(VERSIONS)
    return True


def is_selected(
    selection: str, nodeid: str, server: str | None, favored: set[str], slow: pytest.Mark | None
) -> bool:
    """Return whether a selection includes a test; `server` is None if it needs none.

    favored: the servers that run all tests, see favored_by. slow: the test's closest marker.
    """
    if not may_select(selection, nodeid, is_favored=server is None or server in favored):
        return False
    product = product_of(server or "")
    if slow is not None and slow.kwargs.get("on", product) != product:
        slow = None
    match selection:
        case "check" | "test":
            return slow is None
        case "ci":
            return slow is None or _is_in_ci(slow, product)
    return True


def _is_in_ci(slow: pytest.Mark, product: str) -> bool:
    """Return whether .ci/run runs a slow test: on PostgreSQL, unless its marker differs."""
    named = slow.kwargs.get("ci", True)
    return bool(named) and product in {"", "postgres", named}


def favored_by(selection: str, chosen: list[str], given: set[str], *, is_asked: bool) -> set[str]:
    """Return the servers on which a selection runs all tests.

    given: the servers at a URL in the environment. is_asked: whether the command line names
    servers.
    """
    if selection in {"check", "test", "ci"} and is_asked:
        return set(chosen)
    latest = newest(chosen)
    if selection == "check":
        return {name for name in latest if product_of(name) == "postgres"}
    if selection in {"test", "ci"}:
        return {name for name in latest if name.startswith(AT_FIRST) or name in given}
    products = {product_of(name) for name in chosen}
    return {name for name in latest if SAME_SQL.get(product_of(name)) not in products}
