"""Every command in the READMEs and docs prints the documented output."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rowq
from rowq.tools.migrate import migrate
from tests.docs.transcript import agrees, examples, printed_by
from tests.engines.base import Server
from tests.engines.postgres.psql import psql_program
from tests.static.sources import ROOT


@pytest.mark.slow("runs the README")
@pytest.mark.requires("psql")
def test_readme_commands_print_documented_output(
    server: Server, empty_database: str, tmp_path: Path
) -> None:
    run_page("README.md", server, empty_database, tmp_path)


@pytest.mark.requires("psql")
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_first_statements_enqueue_lease_and_complete(
    page: str, server: Server, empty_database: str
) -> None:
    migrate(empty_database)
    with rowq.connect(empty_database) as queue:
        queue.create_queue("orders")
    text = (ROOT / page).read_text(encoding="utf-8")
    statements = text.partition("```sql\n")[2].partition("```")[0]
    command = [psql_program(server), "--no-psqlrc", "-At", "--set", "ON_ERROR_STOP=1"]

    def printed(*lines: str, claim_id: str = "") -> list[str]:
        done = subprocess.run(
            [*command, "--set", f"claim_id={claim_id}", empty_database],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    *first, last = statements.splitlines()
    enqueued, leased = printed(*first)
    assert enqueued == "1|enqueued"
    claim_id, message_id, attempt, *_ = leased.split("|")
    assert (message_id, attempt) == ("1", "1")
    assert printed(last, claim_id=claim_id) == ["1|completed"]


EMPTY = ("docs/install.md", "python_client/README.md")
"""Pages that install rowq themselves."""
LONG = ("docs/import.md", "docs/operate.md", "docs/python/celery.md")
"""Pages that are too slow for .ci/run."""
NEEDED = {"docs/import.md": "procrastinate", "docs/python/django.md": "django"}
"""The package that a page's commands import, by page."""


def pages() -> list[str]:
    """Return the pages with examples, but start.md, which test_newcomer.py runs tab by tab."""
    found = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "python").glob("*.md")]
    names = [path.relative_to(ROOT).as_posix() for path in [*found, ROOT / EMPTY[-1]]]
    with_examples = [name for name in names if any(examples((ROOT / name).read_text("utf-8")))]
    return sorted(set(with_examples) - {"docs/start.md"})


@pytest.mark.timeout(300)
@pytest.mark.requires("psql")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=pytest.mark.slow("executes a long page", ci=page not in LONG), id=page
        )
        for page in pages()
    ],
)
def test_page_prints_its_outputs(
    page: str, server: Server, empty_database: str, tmp_path: Path
) -> None:
    if page in NEEDED:
        import_module(NEEDED[page])
    if page not in EMPTY:
        migrate(empty_database)
    run_page(page, server, empty_database, tmp_path)


def test_pages_with_examples_are_found() -> None:
    assert {"docs/recipes.md", "docs/python/index.md", *EMPTY, *LONG, *NEEDED} <= set(pages())


def run_page(page: str, server: Server, url: str, directory: Path) -> None:
    """Run all examples of a page in order on one database."""
    if not page.startswith("docs/examples/"):  # Other pages assume a clone.
        (directory / "docs").mkdir()
        for folder in ("docs/monitoring", "migrations", "sql"):
            (directory / folder).symlink_to(ROOT / folder)
    programs = [Path(sys.executable).parent, Path(psql_program(server)).parent]
    tools = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": tools, "ROWQ_URL": url, "COLUMNS": "100"}
    environment.pop("PYTEST_ADDOPTS", None)  # They are for the outer run.
    todo = list(examples((ROOT / page).read_text(encoding="utf-8")))
    assert todo
    for example in todo:
        printed = printed_by(example, environment, directory)
        assert agrees(example.output, printed), f"{example.shown}\nprinted:\n{printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a  \nb\n", "a\nb", True),
        ("a ... c\n", "a b c\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_different_output_is_found(shown: str, printed: str, *, same: bool) -> None:
    assert agrees(shown, printed) is same
