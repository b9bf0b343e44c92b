"""The commands migrate, rollback, status and sql; tests/migrations tests what they do."""

import os
import subprocess
from pathlib import Path

import pytest

import rowq
from rowq.engines import engines
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.migrate import (
    Migrated,
    alembic_files,
    flyway_files,
    migrate,
    plain_script,
    script,
)
from tests.cli.conftest import Run
from tests.cli.working import PROGRAM
from tests.engines.base import Server
from tests.helpers.releases import NEWEST, copied_without_history, use_released


def test_migrate_status_and_rollback_work(empty_database: str, run_without_database: Run) -> None:
    before = run_without_database("status", "--json", url=empty_database)
    assert before.code == ExitCode.INCOMPLETE
    assert (before.row["installed"], before.row["pending"]) == (0, before.row["available"])

    installed = run_without_database("migrate", "--json", url=empty_database)
    assert (installed.code, installed.row["applied"]) == (0, before.row["available"])

    after = run_without_database("status", url=empty_database)
    assert after.code == 0
    lines = [line.split(maxsplit=1) for line in after.out.splitlines()]
    assert ["installed", f"rowq {rowq.__version__}, migration {NEWEST}"] in lines
    assert "pending" in after.out

    again = run_without_database("migrate", url=empty_database)
    assert (again.code, "nothing to do" in again.out) == (0, True)

    removed = run_without_database("rollback", "--to", 0, url=empty_database)
    assert (removed.code, "rowq is removed" in removed.out) == (0, True)
    for role in ("producer", "consumer", "monitor", "admin"):
        assert f"drop role rowq_{role};" in removed.err
    assert run_without_database("status", "--json", url=empty_database).row["installed"] == 0


def test_notice_is_escaped(run_without_database: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Migrated((), (), 1, ("role \x1b]0;owned\x07\nnotice: done",))
    monkeypatch.setattr("rowq.tools.command.migrate.migrations.migrate", lambda *_: done)
    shown = run_without_database("migrate", url="postgresql://")
    assert shown.err == "notice: role \\x1b]0;owned\\x07\\nnotice: done\n"


def fill(url: str, state: str) -> None:
    """Install rowq, and bring three messages of a queue with an archive into a state."""
    migrate(url)
    with rowq.connect(url) as queue:
        queue.create_queue("orders", archive_days=7)
        delay_seconds = 1000 if state == "delayed" else None
        first = None
        for n in range(3):
            sent = queue.enqueue(
                "orders",
                n,
                delay_seconds=delay_seconds,
                group_key="a" if state == "grouped" else None,
                predecessor_ids=[first] if first and state == "blocked" else None,
            )
            first = first or sent.message_id
        if state in {"leased", "dead", "finished", "archived"}:
            claim_id = queue.dequeue_fast("orders", 3)[0].claim_id
        if state == "dead":
            queue.fail_now("orders", claim_id)
        if state in {"finished", "archived"}:
            queue.complete("orders", claim_id)
        if state == "archived":
            queue.archive("orders")


@pytest.mark.parametrize(
    "state",
    [
        *("ready", "delayed", "leased", "dead", "finished", "archived"),
        pytest.param("grouped", marks=pytest.mark.requires("groups")),
        pytest.param("blocked", marks=pytest.mark.requires("predecessors")),
    ],
)
def test_rollback_refuses_to_delete_messages_unless_forced(
    empty_database: str, run_without_database: Run, state: str
) -> None:
    fill(empty_database, state)
    refused = run_without_database("rollback", "--to", 0, url=empty_database)
    assert refused.code == ExitCode.REFUSED
    counts = (0, 3) if state in {"finished", "archived"} else (3, 0)
    expected = "1 queue, {} unfinished and {} archived messages".format(*counts)
    assert refused.err.startswith("rowq: RQ805 messages_left: ")
    assert expected in refused.err
    assert run_without_database("status", url=empty_database).code == 0

    assert run_without_database("rollback", "--to", 0, "--force", url=empty_database).code == 0


def test_rollback_without_to_only_prints_plan(
    server: Server,
    empty_database: str,
    run_without_database: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_released(copied_without_history(tmp_path, server.engine), monkeypatch)
    nothing = run_without_database("rollback", url=empty_database)
    assert (nothing.code, nothing.out) == (ExitCode.USAGE, "Nothing is installed.\n")

    fill(empty_database, "archived")
    for options in ((), ("--force",)):
        plan = run_without_database("rollback", *options, url=empty_database)
        assert plan.code == ExitCode.USAGE
        assert plan.out == (
            "This removes migration 1 (all of rowq except its roles), and deletes 1 queue,"
            " 0 unfinished and 3 archived messages.\n"
            "Nothing was changed. To do it: rowq rollback --to 0\n"
        )
    as_json = run_without_database("rollback", "--json", url=empty_database)
    assert as_json.row == {
        "installed": 1,
        "to": 0,
        "removed": [1],
        "losses": {"queues": 1, "unfinished": 0, "archived": 3},
    }
    assert run_without_database("status", url=empty_database).code == 0


@pytest.mark.parametrize(
    ("answer", "code", "installed"), [("n", ExitCode.REFUSED, NEWEST), ("y", ExitCode.DONE, 0)]
)
def test_rollback_asks_on_terminal(
    empty_database: str, run_without_database: Run, answer: str, code: int, installed: int
) -> None:
    fill(empty_database, "ready")
    terminal, other_side = os.openpty()
    os.write(terminal, f"{answer}\n".encode())
    done = subprocess.run(
        [PROGRAM, "rollback", "--to", "0"],
        stdin=other_side,
        stdout=subprocess.DEVNULL,
        stderr=other_side,
        env=os.environ | {"ROWQ_URL": empty_database},
        check=False,
    )
    assert done.returncode == code
    asked = os.read(terminal, 10_000)
    os.close(terminal)
    os.close(other_side)
    assert b"3 unfinished and 0 archived messages. Continue?" in asked
    status = run_without_database("status", "--json", url=empty_database)
    assert status.row["installed"] == installed


def test_migrate_refuses_unknown_migration(empty_database: str, run_without_database: Run) -> None:
    done = run_without_database("migrate", "--to", 999, url=empty_database)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ807 ")


def test_sql_prints_script(run_without_database: Run) -> None:
    for engine in engines():
        done = run_without_database("sql", "--engine", engine.name)
        assert (done.code, done.out) == (0, script(engine.name))


def test_sql_refuses_unknown_engine(run_without_database: Run) -> None:
    done = run_without_database("sql", "--engine", "papyrus")
    assert done.code == ExitCode.USAGE
    assert "papyrus" in done.err


def test_sql_prints_plain_script(run_without_database: Run) -> None:
    for engine in engines():
        done = run_without_database("sql", "--engine", engine.name, "--plain")
        assert (done.code, done.out) == (0, plain_script(engine.name))
    bare = run_without_database("sql", "--engine", "mariadb", "--plain", "--without-owner")
    assert bare.out == plain_script("mysql", with_owner=False)


def test_sql_writes_flyway_and_alembic_files_once(
    tmp_path: Path, run_without_database: Run
) -> None:
    for option, make in (("--flyway", flyway_files), ("--alembic", alembic_files)):
        folder = tmp_path / option
        words = ("sql", "--engine", "postgres", option, str(folder))
        done = run_without_database(*words)
        names = [Path(line.removesuffix(": written")).name for line in done.out.splitlines()]
        assert (done.code, sorted(names)) == (0, sorted(make("postgres")))
        for name, text in make("postgres").items():
            assert (folder / name).read_text(encoding="utf-8") == text
        assert run_without_database(*words).out == ""
        (folder / names[-1]).write_text("another", encoding="utf-8")
        refused = run_without_database(*words)
        assert refused.code == ExitCode.FAILED
        assert "exists with other content" in refused.err


def test_sql_refuses_two_forms(tmp_path: Path, run_without_database: Run) -> None:
    done = run_without_database(
        "sql", "--engine", "postgres", "--plain", "--flyway", str(tmp_path / "new")
    )
    assert done.code == ExitCode.USAGE
    assert "mutually exclusive" in done.err
    assert not (tmp_path / "new").exists()
