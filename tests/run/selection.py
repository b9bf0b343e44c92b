"""What a run executes: the one place that says which tests are long, and where versions matter.

    check    CHECKED, on the newest PostgreSQL
    short    what a newcomer needs: all but LONG, on the newest PostgreSQL, the newest MariaDB, and
             servers that are given
    all      LONG too, on the newest version of each product, and VERSIONS on the older ones, and on
             a product that runs the SQL files of another one of the run
    ci       as much of these as .ci/run has time for: on the newest PostgreSQL all but
             CI_LEAVES_OUT, on the newest MariaDB short without CI_ON_POSTGRES but with
             CI_ON_MARIADB, and CI_ELSEWHERE on others
    named    whatever the command line names, on every server that is chosen

A run that names no tests is a short one, unless it is told to be another.
"""

import re
from collections.abc import Iterable

import pytest

SELECTIONS = ("check", "short", "all", "ci", "named")

CHECKED = ("tests/static/", "tests/contract/")
"""What `make check` runs: the files against the contract, and what each routine promises."""

AT_FIRST = ("postgres", "mariadb")
"""The products of a short run: they need no container."""

SAME_SQL = {"mysql": "mariadb"}
"""By product, another one that runs the same SQL files."""

LONG = (
    "tests/benchmarks/",
    "tests/chaos/",
    "tests/cli/test_load.py::test_seventy_thousand_rows_go_in_by_seventy_calls",
    "tests/client/test_worker_processes.py::test_a_child_that_dies_while_the_database_is_away",
    "tests/concurrency/test_against_reference.py",
    "tests/concurrency/test_many_sessions.py",
    "tests/contract/test_cancel.py::test_ten_thousand_messages_are_withdrawn_at_once",
    "tests/demo/",
    "tests/docs/test_examples.py::test_the_page_on_operation",
    "tests/docs/test_newcomer.py::test_a_task",
    "tests/engine_only/mysql/test_looks.py::test_health_is_as_cheap_beside_an_old_view",
    "tests/engine_only/mysql/test_migrations.py::test_a_crash_at_any_statement",
    "tests/engine_only/postgres/test_import.py::test_jobs_of_pg_boss",
    "tests/examples/test_pages.py",
    "tests/examples/test_programs.py::test_a_worker_beside",
    "tests/frameworks/test_django.py::test_a_project_installs_rowq_uses_it_and_removes_it",
    "tests/metrics/test_scrape.py",
    "tests/release/",
    "tests/security/mysql/test_session_variables.py::test_no_variable_of_a_session",
    "tests/static/test_tsql.py::test_a_planted_fault_is_found_near_its_line",
    "tests/static/test_tsql.py::test_the_scripts_of_two_releases_pass",
    "tests/web/test_accessible.py",
    "tests/web/test_in_browser.py::test_long",
    "tests/web/test_live.py::test_a_lost_database",
)
"""Beginnings of the node ids of tests that take long, or kill what they can.

Those of static/ try the grammars themselves with planted errors and made-up releases; what rowq
ships is in every run.
"""

VERSIONS = (
    "sql/postgres/addons/",
    "tests/chaos/test_migration_under_load.py",
    "tests/contract/",
    "tests/engine_only/",
    "tests/interleavings/",
    "tests/migrations/",
    "tests/security/",
)
"""Rooms whose tests may come out otherwise on an older version, or on a product of SAME_SQL."""

CI_LEAVES_OUT = (
    "tests/benchmarks/",
    "tests/chaos/test_unruly_handlers.py::test_unruly_programs",
    "tests/docs/test_examples.py::test_a_page_on_coming_from_another_queue",
    "tests/docs/test_examples.py::test_the_page_on_operation",
    "tests/docs/test_newcomer.py",
    "tests/examples/test_pages.py",
    "tests/release/test_files.py::test_the_commands_of_compose",
    "tests/release/test_next_version.py",
    "tests/static/test_tsql.py::test_a_planted_fault_is_found_near_its_line",
    "tests/static/test_tsql.py::test_the_scripts_of_two_releases_pass",
    "tests/web/test_accessible.py",
    "tests/web/test_in_browser.py::test_long",
)
"""What .ci/run tries nowhere: it would take longer than the rest of its room."""

CI_ON_POSTGRES = (
    "tests/celery/",
    "tests/chaos/test_migration_under_load.py",
    "tests/chaos/test_stripes.py",
    "tests/cli/",
    "tests/client/",
    "tests/concurrency/test_groups_that_close.py",
    "tests/contract/test_body_length.py",
    "tests/contract/test_hostile_arguments.py",
    "tests/demo/",
    "tests/docs/",
    "tests/engine_only/mysql/test_binary_log.py",
    "tests/engine_only/mysql/test_costs.py",
    "tests/engine_only/mysql/test_dead_rows.py",
    "tests/engine_only/mysql/test_expiry.py::test_an_old_view",
    "tests/engine_only/mysql/test_flat.py",
    "tests/engine_only/mysql/test_looks.py",
    "tests/engine_only/mysql/test_packet.py",
    "tests/engine_only/mysql/test_sizes.py",
    "tests/examples/",
    "tests/frameworks/",
    "tests/metrics/",
    "tests/security/",
    "tests/testing/",
    "tests/web/",
)
"""What .ci/run does not try on MariaDB, but for CI_ON_MARIADB: what is not about its SQL, and what
takes long there.
"""

CI_ON_MARIADB = (
    "tests/chaos/test_server_killed.py::test_ten_sessions",
    "tests/cli/test_migrate.py",
    "tests/client/test_queue.py",
    "tests/client/test_worker.py",
)
"""What .ci/run tries on MariaDB of LONG and of CI_ON_POSTGRES."""

CI_CORE = (
    "tests/contract/test_enqueue",
    "tests/contract/test_dequeue",
    "tests/contract/test_finishing.py",
    "tests/contract/test_reap.py",
    "tests/contract/test_reset.py",
    "tests/contract/test_maintain.py",
)
"""The life of a message."""

CI_ELSEWHERE = {
    "postgres": ("tests/engine_only/postgres/test_plans.py",),
    "mariadb": CI_CORE,
    "mysql": CI_CORE,
}
"""By product, what .ci/run tries on an older version of it, or on a product of SAME_SQL."""


def selection_of(config: pytest.Config) -> str:
    """Return which of the selections a run is."""
    given: str | None = config.getoption("--selection")
    option = config.option
    is_named = config.args_source is config.ArgsSource.ARGS or option.keyword or option.markexpr
    return given or ("named" if is_named else "short")


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


def is_selected(selection: str, nodeid: str, server: str | None, favoured: set[str]) -> bool:
    """Return whether a test belongs to a selection; `server` is None for one that needs none.

    favoured: the servers on which all rooms are run, see favoured_by.
    """
    is_favoured = server is None or server in favoured
    match selection:
        case "check":
            return is_favoured and nodeid.startswith(CHECKED) and not nodeid.startswith(LONG)
        case "short":
            return is_favoured and not nodeid.startswith(LONG)
        case "all":
            return is_favoured or nodeid.startswith(VERSIONS)
        case "ci":
            return _is_in_ci(nodeid, server, is_favoured=is_favoured)
    return True


def _is_in_ci(nodeid: str, server: str | None, *, is_favoured: bool) -> bool:
    """Return whether a test is one of .ci/run's."""
    product = product_of(server or "")
    if not is_favoured:
        return nodeid.startswith(CI_ELSEWHERE.get(product, ()))
    if product == "mariadb":
        left_out = nodeid.startswith((*LONG, *CI_ON_POSTGRES))
        return not left_out or nodeid.startswith(CI_ON_MARIADB)
    return not nodeid.startswith(CI_LEAVES_OUT)


def favoured_by(selection: str, chosen: list[str], given: set[str], *, is_asked: bool) -> set[str]:
    """Return the servers on which a selection runs all rooms.

    Args:
        selection: one of SELECTIONS.
        chosen: the servers of the run.
        given: those that have a URL in the environment.
        is_asked: whether the command line names the servers.
    """
    if selection in {"check", "short"} and is_asked:
        return set(chosen)
    latest = newest(chosen)
    if selection == "check":
        return {name for name in latest if product_of(name) == "postgres"}
    if selection == "short":
        return {name for name in latest if name.startswith(AT_FIRST) or name in given}
    products = {product_of(name) for name in chosen}
    return {name for name in latest if SAME_SQL.get(product_of(name)) not in products}
