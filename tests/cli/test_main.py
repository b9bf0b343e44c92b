"""The program: entry point, exit statuses, errors on one line, secrets."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import rowq
from rowq.tools.console.errors import one_line
from rowq.tools.console.exit_codes import MEANINGS, ExitCode
from tests.cli.conftest import Run

PROGRAM = str(Path(sys.executable).with_name("rowq"))
SECRET = "pa55w0rd-of-mine"
NOWHERE = f"postgresql://someone:{SECRET}@127.0.0.1:1/nowhere"


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program."""
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "ROWQ_URL"} | environment,
        check=False,
    )


def test_version_is_printed() -> None:
    for argument in ("--version", "version"):
        done = program(argument)
        assert (done.returncode, done.stdout) == (0, f"rowq {rowq.__version__}\n")
    assert program("version", "--json").stdout == f'{{"rowq_version": "{rowq.__version__}"}}\n'


def test_help_lists_exit_statuses(run_without_database: Run) -> None:
    text = run_without_database("--help").out
    for code in ExitCode:
        assert f"{code}: {MEANINGS[code]}" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_supports_common_shells(shell: str) -> None:
    # Otherwise typer detects the shell by the parent processes.
    done = program("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert f"_ROWQ_COMPLETE=complete_{shell}" in done.stdout


def test_completion_offers_commands() -> None:
    done = program(_ROWQ_COMPLETE="complete_bash", COMP_WORDS="rowq queue pu", COMP_CWORD="2")
    assert done.stdout.split() == ["purge"]


def test_connection_failure_sets_exit_status_3(
    run_without_database: Run,
) -> None:
    done = run_without_database("stats", url=NOWHERE)
    assert done.code == ExitCode.NO_CONNECTION
    assert done.out == ""
    assert done.err.startswith("rowq: PostgreSQL: ")
    assert done.err.count("\n") == 1
    assert SECRET not in done.err
    assert program("stats", "--url", NOWHERE).stderr == done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("stats", "--url", f"postgresql://someone:{SECRET}@host:port/x"),
        ("stats", "--url", f"postgresql://host/x?password={SECRET}&nonsense=1"),
        ("stats", "--url", f"oracle://someone:{SECRET}@host/x"),
        ("migrate", "--url", NOWHERE),
        ("status", "--url", NOWHERE),
        ("work", "orders", "--exec", "true", "--url", NOWHERE),
        ("demo", "--url", NOWHERE),
        ("stats", NOWHERE, "--url", NOWHERE),
        ("--url", NOWHERE, "stats"),
        ("migrate", "--to", NOWHERE),
    ],
)
def test_failure_hides_password(run_without_database: Run, arguments: tuple[str, ...]) -> None:
    done = run_without_database(*arguments)
    assert done.code not in {0, None}
    assert SECRET not in done.out + done.err


def test_url_instead_of_queue_hides_password(run: Run) -> None:
    done = run("stats", NOWHERE)
    assert done.code == ExitCode.REFUSED
    assert "RQ701" in done.err
    assert SECRET not in done.err


def test_url_of_unknown_engine_is_wrong_usage(run_without_database: Run) -> None:
    done = run_without_database("stats", url="nonsense://host/x")
    assert done.code == ExitCode.USAGE
    assert "postgresql://" in done.err


def test_missing_url_is_wrong_usage_and_names_variable(run_without_database: Run) -> None:
    done = run_without_database("stats")
    assert done.code == ExitCode.USAGE
    text = " ".join(done.err.replace("│", " ").split())
    assert "set ROWQ_URL=postgresql://user:password@host/database" in text


def test_url_defaults_to_database_url(
    database_url: str, run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert run_without_database("stats", "--json").code == 0
    assert run_without_database("stats", url=NOWHERE).code == ExitCode.NO_CONNECTION


@pytest.mark.parametrize("url", ["sqlite:///x", "", "postgresql+asyncpg://host/x"])
def test_database_url_of_unknown_kind_is_ignored(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    done = run_without_database("stats")
    assert done.code == ExitCode.USAGE
    assert "ROWQ_URL" in done.err


def test_password_in_database_url_is_hidden(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    done = run_without_database("stats", SECRET)
    assert done.code == ExitCode.NO_CONNECTION
    assert SECRET not in done.err


def test_missing_driver_sets_exit_status_7(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = run_without_database("stats", url=NOWHERE)
    assert (done.code, "pip install" in done.err) == (ExitCode.NOT_INSTALLED, True)


def test_postgresql_error_is_printed_without_context() -> None:
    text = "cannot execute CREATE SCHEMA in a read-only transaction"
    error = psycopg.errors.ReadOnlySqlTransaction(f"{text}\nCONTEXT:  SQL statement\nPL/pgSQL x")
    assert one_line(error) == text


def test_refusal_sets_exit_status_1_and_prints_number(run: Run, queue_name: str) -> None:
    done = run("peek", queue_name)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith(f'rowq: RQ701 queue_not_found: queue "{queue_name}"')
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_unknown_queue_suggests_similar_names(run: Run, queue: rowq.Queue, queue_name: str) -> None:
    name = queue_name[-30:]
    queue.create_queue(name)
    wrong = name.upper()[:-1]
    for command in (("enqueue", wrong, "1"), ("peek", wrong), ("work", wrong, "--exec", "true")):
        done = run(*command)
        assert done.code == ExitCode.REFUSED
        refused = f'rowq: RQ701 queue_not_found: queue "{wrong}" does not exist; did you mean "'
        assert done.err.startswith(refused)
        assert f'"{name}"' in done.err
    queue.drop_queue(name)
    unlike = run("peek", "nothing is like this ~~~~~~~~")
    name = "nothing is like this ~~~~~~~~"
    assert unlike.err == f'rowq: RQ701 queue_not_found: queue "{name}" does not exist\n'


@pytest.mark.parametrize("command", [("stats",), ("queue", "create", "x"), ("health",)])
def test_missing_installation_suggests_migrate(
    empty_database: str, run_without_database: Run, command: tuple[str, ...]
) -> None:
    done = run_without_database(*command, url=empty_database)
    assert done.code == ExitCode.NOT_INSTALLED
    assert "rowq migrate" in done.err
    assert done.err.count("\n") == 1
