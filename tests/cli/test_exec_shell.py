"""rowq work --exec and the shell: no operator of one is taken for an argument in silence."""

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
def test_an_operator_of_a_shell_is_pointed_out_before_anything_is_taken(
    run: Run, queue: rowq.Queue, made: str, command: str, operator: str
) -> None:
    queue.enqueue(made, 1)
    done = run("work", made, "--exec", command, "--drain")
    assert done.code == ExitCode.USAGE
    said = " ".join(done.err.replace("│", " ").split())
    assert f"no shell runs the command, so {operator} would be an argument" in said
    assert "--shell" in said
    assert queue.peek(made)[0].attempt == 0


@pytest.mark.parametrize(
    "command",
    ["echo '|'", 'echo ">"', "echo \\;", "echo a=b&c=d", "sh -c 'cat | cat'", "echo a|b -> x"],
)
def test_what_is_quoted_or_inside_of_a_word_is_an_argument(
    run: Run, queue: rowq.Queue, made: str, command: str
) -> None:
    queue.enqueue(made, 1)
    assert run("work", made, "--exec", command, "--drain").code == 0
    assert queue.queue_stats(made)[0].ready == 0


def test_with_shell_a_shell_runs_the_text(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, {"id": 7})
    found = tmp_path / "found"
    text = f"grep -o '[0-9]' | sed s/7/seven/ > {found} && echo $ROWQ_ATTEMPT >> {found}"
    done = work(database_url, made, "--shell", "--exec", text, "--drain", "--json")
    assert (done.returncode, counts(done)) == (0, {"processed": 1})
    assert lines(found) == ["seven", "1"]


def test_with_shell_a_command_that_is_not_there_still_stops_the_worker(
    database_url: str, queue: rowq.Queue, made: str
) -> None:
    queue.enqueue_batch(made, [1, 2, 3])
    done = work(
        database_url, made, "--shell", "--exec", "no-such-program | cat; exit 127", "--drain"
    )
    assert done.returncode == ExitCode.FAILED
    assert "nothing was declared dead" in done.stderr


def test_shell_is_for_exec_only(run: Run, made: str) -> None:
    assert run("work", made, "json:loads", "--shell").code == ExitCode.USAGE
    assert run("work", made, "--exec", " ", "--shell").code == ExitCode.USAGE
