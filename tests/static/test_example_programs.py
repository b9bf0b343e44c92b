"""Every example has a worker with all steps of the page, an enqueue program and a short page."""

import re
import subprocess
from pathlib import Path

import pytest

from rowq.contract import load_contract
from tests.examples.programs import EXAMPLES, languages, need
from tests.static.sources import ROOT

PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
STEPS = [int(number) for number in re.findall(r"^\| (\d+) \| ", PAGE, re.MULTILINE)]
MOST_LINES = 150
MOST_LINES_OF_A_PAGE = 45


def test_page_has_12_steps_and_every_language() -> None:
    assert list(range(1, 13)) == STEPS
    assert [name for name in languages() if f"({name}/README.md)" not in PAGE] == []
    folders = {path.parent.name for path in EXAMPLES.glob("*/README.md")}
    assert set(languages()) <= folders


@pytest.mark.parametrize("name", languages())
def test_worker_has_all_steps_in_order(name: str) -> None:
    (worker,) = (path for path in (EXAMPLES / name).glob("[wW]orker.*") if path.is_file())
    text = worker.read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"\bstep (\d+):", text)] == STEPS


@pytest.mark.parametrize("name", languages())
def test_programs_and_page_of_language_are_short(name: str) -> None:
    programs = [path for path in (EXAMPLES / name).glob("[eEwW]*.*") if path.is_file()]
    assert {path.stem.lower() for path in programs} >= {"enqueue", "worker"}
    for path in programs:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, path
    page = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= MOST_LINES_OF_A_PAGE
    assert "../README.md" in page


def test_readme_links_to_the_examples() -> None:
    assert "(docs/examples/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*/*.sh")), ids=lambda path: path.name)
def test_shellcheck_finds_no_fault(script: Path) -> None:
    program = need("shellcheck", "shellcheck")
    done = subprocess.run([program, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_node_passes_mysql_parameters_in_contract_order() -> None:
    text = (EXAMPLES / "node" / "mysql.js").read_text(encoding="utf-8")
    table = text.partition("const parameters = {")[2].partition("\n};")[0]
    entries = re.findall(r'(\w+):\s*((?:"[^"]*"[\s+]*)+),', table)
    given = {routine: re.sub(r"[^\w ]+|\s{2,}", "", names).split() for routine, names in entries}
    assert given.keys() >= {"complete", "dequeue_fast", "enqueue", "extend_lease", "maintain"}
    for routine, names in given.items():
        entry = load_contract().routine(routine).on("mysql")
        assert names == [parameter.name for parameter in entry.parameters]


def test_make_lint_checks_types_of_python_examples() -> None:
    found = {
        path.parent.parent.name for path in (ROOT / "docs" / "examples").glob("*/*/__init__.py")
    }
    named = re.findall(r"MYPYPATH=docs/examples/(\w+)", (ROOT / "Makefile").read_text("utf-8"))
    assert found == set(named)
