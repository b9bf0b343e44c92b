"""What a run executes, by the marker `slow` and by the servers at hand.

    check    CHECKED without slow tests, on the newest PostgreSQL
    test     all but slow tests, on the newest PostgreSQL, the newest MariaDB, and given servers
    ci       `test`, and the slow tests that .ci/run has time for
    all      everything on the newest version of each product, and VERSIONS on the older ones, and
             on a product that runs the SQL files of another one of the run
    named    whatever the command line names, on every server that is chosen

A run that names no tests is `test`, unless it is told to be another. At a test, in its file as
`pytestmark`, or for its directory in slow.py:

    @pytest.mark.slow("kills a server")                     # left to make test-all and to .ci/run
    @pytest.mark.slow("kills a server", ci="mariadb")       # .ci/run has it on MariaDB, too
    @pytest.mark.slow("ten minutes", ci=False)              # left to make test-all
    @pytest.mark.slow("about the command", on="mariadb")    # slow there only
"""

import re
from collections.abc import Iterable

import pytest

SELECTIONS = ("check", "test", "ci", "all", "named")

CHECKED = ("tests/static/", "tests/contract/", "tests/client/")
"""What `make check` runs: the files against the contract, each routine's promises, the client."""

AT_FIRST = ("postgres", "mariadb")
"""The products of `make test`: they need no container."""

SAME_SQL = {"mysql": "mariadb"}
"""By product, another one that runs the same SQL files."""

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
"""Rooms whose tests may come out otherwise on an older version, or on a product of SAME_SQL."""


def selection_of(config: pytest.Config) -> str:
    """Return which of the selections a run is."""
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


def may_select(selection: str, path: str, *, is_favoured: bool) -> bool:
    """Return whether a file, or a test of it, may belong to a selection; see is_selected."""
    match selection:
        case "check":
            return is_favoured and path.startswith(CHECKED)
        case "test" | "ci":
            return is_favoured
        case "all":
            return is_favoured or path.startswith(VERSIONS)
    return True


def is_selected(
    selection: str, nodeid: str, server: str | None, favoured: set[str], slow: pytest.Mark | None
) -> bool:
    """Return whether a test belongs to a selection; `server` is None for one that needs none.

    favoured: the servers on which all rooms are run, see favoured_by. slow: the marker that is
    closest to the test, if there is one.
    """
    if not may_select(selection, nodeid, is_favoured=server is None or server in favoured):
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
    """Return whether .ci/run has time for a slow test: on PostgreSQL, unless its marker differs."""
    named = slow.kwargs.get("ci", True)
    return bool(named) and product in {"", "postgres", named}


def favoured_by(selection: str, chosen: list[str], given: set[str], *, is_asked: bool) -> set[str]:
    """Return the servers on which a selection runs all rooms.

    Args:
        selection: one of SELECTIONS.
        chosen: the servers of the run.
        given: those that have a URL in the environment.
        is_asked: whether the command line names the servers.
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
