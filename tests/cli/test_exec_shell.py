"""rowq work --exec: shell operators need --shell."""

from __future__ import annotations

from pathlib import Path

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.cli.working import counts, lines, work


@pytest.mark.parametrize(
    ("command", "operator"),
    [
        ("grep id | wc -l", "|"),
        ("cat > file", ">"),
        ("cat >>file", ">>file"),
        ("cat 2>/dev/null", "2>/dev/null"),
        ("cat < file", "<"),
        ("true && false", "&&"),
        ("true || false", "||"),
        ("true ; false", ";"),
        ("true; false", "true;"),
        ("true &", "&"),
    ],
)
def test_shell_operator_is_refused_before_dequeue(
    run: Run, queue: rowq.Queue, made: str, command: str, operator: str
) -> None:
    queue.enqueue(made, 1)
    done = run("work", made, "--exec", command, "--drain")
    assert done.code == ExitCode.USAGE
    text = " ".join(done.err.replace("│", " ").split())
    assert f"{operator} would be an argument of" in text
    assert "--shell" in text
    assert queue.peek(made)[0].attempt == 0


@pytest.mark.parametrize(
    "command",
    ["echo '|'", 'echo ">"', "echo \\;", "echo a=b&c=d", "sh -c 'cat | cat'", "echo a|b -> x"],
)
def test_quoted_operator_is_an_argument(
    run: Run, queue: rowq.Queue, made: str, command: str
) -> None:
    queue.enqueue(made, 1)
    assert run("work", made, "--exec", command, "--drain").code == 0
    assert queue.queue_stats(made)[0].ready == 0


def test_shell_option_runs_pipeline(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, {"id": 7})
    found = tmp_path / "found"
    text = f"grep -o '[0-9]' | sed s/7/seven/ > {found} && echo $ROWQ_ATTEMPT >> {found}"
    done = work(database_url, made, "--shell", "--exec", text, "--drain", "--json")
    assert (done.returncode, counts(done)) == (0, {"processed": 1})
    assert lines(found) == ["seven", "1"]


def test_missing_command_in_shell_stops_worker(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue_batch(made, [1, 2, 3])
    done = work(
        database_url, made, "--shell", "--exec", "no-such-program | cat; exit 127", "--drain"
    )
    assert done.returncode == ExitCode.FAILED
    assert "no message was made dead" in done.stderr


def test_shell_requires_exec(run: Run, made: str) -> None:
    assert run("work", made, "json:loads", "--shell").code == ExitCode.USAGE
    assert run("work", made, "--exec", " ", "--shell").code == ExitCode.USAGE
