"""migrate, rollback, status and sql as commands; what they do is tested in tests/migrations."""

import os
import subprocess
from pathlib import Path

import pytest

import rowq
from rowq.cli.exit_codes import ExitCode
from rowq.engines import engines
from rowq.migrate import (
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


def test_a_notice_with_the_names_of_others_commands_no_terminal(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Migrated((), (), 1, ("role \x1b]0;owned\x07\nnotice: all is well",))
    monkeypatch.setattr("rowq.cli.migrate.migrations.migrate", lambda *_: done)
    told = run_without_database("migrate", url="postgresql://")
    assert told.err == "notice: role \\x1b]0;owned\\x07\\nnotice: all is well\n"


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
def test_rollback_refuses_to_throw_messages_away_unless_forced(
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


def test_rollback_without_to_only_says_what_would_go(
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
        told = run_without_database("rollback", *options, url=empty_database)
        assert told.code == ExitCode.USAGE
        assert told.out == (
            "This removes migration 1, which is all of rowq except its roles, and throws away 1"
            " queue, 0 unfinished and 3 archived messages.\n"
            "Nothing is done yet. To do it: rowq rollback --to 0\n"
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
def test_on_a_terminal_rollback_asks_and_does_as_it_is_told(
    empty_database: str, run_without_database: Run, answer: str, code: int, installed: int
) -> None:
    fill(empty_database, "ready")
    terminal, other_side = os.openpty()
    os.write(terminal, f"{answer}\n".encode())  # It waits there until it is read.
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
    assert b"3 unfinished and 0 archived messages. Go on?" in asked
    status = run_without_database("status", "--json", url=empty_database)
    assert status.row["installed"] == installed


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


def test_sql_prints_the_plain_script(run_without_database: Run) -> None:
    for engine in engines():
        done = run_without_database("sql", "--engine", engine.name, "--plain")
        assert (done.code, done.out) == (0, plain_script(engine.name))
    bare = run_without_database("sql", "--engine", "mariadb", "--plain", "--without-owner")
    assert bare.out == plain_script("mysql", with_owner=False)


def test_sql_writes_files_for_flyway_and_alembic_once(
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
        assert "is there already, with another content" in refused.err


def test_sql_takes_one_form_at_a_time(tmp_path: Path, run_without_database: Run) -> None:
    done = run_without_database(
        "sql", "--engine", "postgres", "--plain", "--flyway", str(tmp_path / "new")
    )
    assert done.code == ExitCode.USAGE
    assert "choose one of" in done.err
    assert not (tmp_path / "new").exists()
