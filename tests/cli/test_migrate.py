"""migrate, rollback, status and sql as commands; what they do is tested in tests/migrations."""

from __future__ import annotations

import rowq
from rowq.cli.errors import ExitCode
from rowq.engines import engines
from rowq.migrate import script
from tests.cli.conftest import Run


def test_a_database_is_installed_looked_at_and_left_as_it_was(
    empty_database: str, run_without_database: Run
) -> None:
    before = run_without_database("status", "--json", url=empty_database)
    assert before.code == ExitCode.INCOMPLETE
    assert (before.row["installed"], before.row["pending"]) == (0, before.row["available"])

    installed = run_without_database("migrate", "--json", url=empty_database)
    assert (installed.code, installed.row["applied"]) == (0, before.row["available"])

    after = run_without_database("status", url=empty_database)
    assert after.code == 0
    assert "pending" in after.out

    again = run_without_database("migrate", url=empty_database)
    assert (again.code, "nothing to do" in again.out) == (0, True)

    removed = run_without_database("rollback", "--to", 0, url=empty_database)
    assert (removed.code, "rowq is removed" in removed.out) == (0, True)
    assert run_without_database("status", "--json", url=empty_database).row["installed"] == 0


def test_rollback_refuses_to_throw_messages_away_unless_forced(
    empty_database: str, run_without_database: Run
) -> None:
    assert run_without_database("migrate", "--to", 1, url=empty_database).code == 0
    with rowq.connect(empty_database) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", 1)

    refused = run_without_database("rollback", "--to", 0, url=empty_database)
    assert refused.code == ExitCode.REFUSED
    assert refused.err.startswith("rowq: RQ805 ")

    assert run_without_database("rollback", "--to", 0, "--force", url=empty_database).code == 0


def test_an_unknown_migration_is_refused_by_number(
    empty_database: str, run_without_database: Run
) -> None:
    done = run_without_database("migrate", "--to", 999, url=empty_database)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ807 ")


def test_sql_prints_the_whole_script_and_nothing_else(run_without_database: Run) -> None:
    for engine in engines():
        done = run_without_database("sql", "--engine", engine.name)
        assert (done.code, done.out) == (0, script(engine.name))


def test_sql_refuses_an_engine_it_does_not_have(run_without_database: Run) -> None:
    done = run_without_database("sql", "--engine", "papyrus")
    assert done.code == ExitCode.USAGE
    assert "papyrus" in done.err
