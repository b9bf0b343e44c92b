"""The command as a whole: entry point, exit codes, errors on one line, secrets."""

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


def test_the_installed_program_tells_its_version() -> None:
    done = program("--version")
    assert (done.returncode, done.stdout) == (0, f"rowq {rowq.__version__}\n")


def test_help_lists_every_exit_code_with_its_meaning(run_without_database: Run) -> None:
    text = run_without_database("--help").out
    for code in ExitCode:
        assert f"{code}: {MEANINGS[code]}" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_every_common_shell(shell: str) -> None:
    # The program would show the completion of a shell among its parents, where there may be none.
    done = program("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert f"_ROWQ_COMPLETE=complete_{shell}" in done.stdout


def test_completion_offers_the_commands() -> None:
    done = program(_ROWQ_COMPLETE="complete_bash", COMP_WORDS="rowq queue pu", COMP_CWORD="2")
    assert done.stdout.split() == ["purge"]


def test_no_connection_is_exit_code_3_and_one_line_without_the_password(
    run_without_database: Run,
) -> None:
    done = run_without_database("stats", url=NOWHERE)
    assert done.code == ExitCode.NO_CONNECTION
    assert done.out == ""
    assert done.err.startswith("rowq: PostgreSQL: ")
    assert done.err.count("\n") == 1
    assert SECRET not in done.err


def test_the_installed_program_shows_no_traceback_when_it_cannot_connect() -> None:
    done = program("stats", "--url", NOWHERE)
    assert done.returncode == ExitCode.NO_CONNECTION
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr


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
def test_no_failure_shows_the_password(
    run_without_database: Run, arguments: tuple[str, ...]
) -> None:
    done = run_without_database(*arguments)
    assert done.code not in {0, None}
    assert SECRET not in done.out + done.err


def test_a_url_in_the_place_of_a_queue_does_not_show_its_password(run: Run) -> None:
    done = run("stats", NOWHERE)
    assert done.code == ExitCode.REFUSED
    assert "RQ701" in done.err
    assert SECRET not in done.err


def test_a_url_of_an_unknown_engine_is_wrong_usage(run_without_database: Run) -> None:
    done = run_without_database("stats", url="nonsense://host/x")
    assert done.code == ExitCode.USAGE
    assert "postgresql://" in done.err


def test_a_missing_url_is_wrong_usage_and_names_the_variable(run_without_database: Run) -> None:
    done = run_without_database("stats")
    assert done.code == ExitCode.USAGE
    said = " ".join(done.err.replace("│", " ").split())
    assert "export ROWQ_URL=postgresql://user:password@host/database" in said


def test_the_url_is_taken_from_database_url_where_its_scheme_is_known(
    database_url: str, run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert run_without_database("stats", "--json").code == 0
    assert run_without_database("stats", url=NOWHERE).code == ExitCode.NO_CONNECTION


@pytest.mark.parametrize("url", ["sqlite:///x", "", "postgresql+asyncpg://host/x"])
def test_a_database_url_of_another_kind_is_passed_over(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    done = run_without_database("stats")
    assert done.code == ExitCode.USAGE
    assert "ROWQ_URL" in done.err


def test_a_password_in_database_url_is_not_shown(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    done = run_without_database("stats", SECRET)
    assert done.code == ExitCode.NO_CONNECTION
    assert SECRET not in done.err


def test_a_missing_driver_has_the_exit_status_of_what_is_not_installed(
    run_without_database: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = run_without_database("stats", url=NOWHERE)
    assert (done.code, "pip install" in done.err) == (ExitCode.NOT_INSTALLED, True)


def test_version_is_a_command_too(run_without_database: Run) -> None:
    assert run_without_database("version").out == f"rowq {rowq.__version__}\n"
    assert run_without_database("version", "--json").row == {"rowq_version": rowq.__version__}


def test_an_error_of_postgresql_is_shown_without_its_context() -> None:
    text = "cannot execute CREATE SCHEMA in a read-only transaction"
    error = psycopg.errors.ReadOnlySqlTransaction(f"{text}\nCONTEXT:  SQL statement\nPL/pgSQL x")
    assert one_line(error) == text


def test_a_refusal_is_exit_code_1_and_one_line_with_its_number(run: Run, queue_name: str) -> None:
    done = run("peek", queue_name)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith(f'rowq: RQ701 queue_not_found: queue "{queue_name}"')
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_an_unknown_queue_is_compared_with_the_names_there_are(
    run: Run, queue: rowq.Queue, queue_name: str
) -> None:
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
def test_a_database_without_rowq_is_told_how_to_get_it(
    empty_database: str, run_without_database: Run, command: tuple[str, ...]
) -> None:
    done = run_without_database(*command, url=empty_database)
    assert done.code == ExitCode.NOT_INSTALLED
    assert "rowq migrate" in done.err
    assert done.err.count("\n") == 1
