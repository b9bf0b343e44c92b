"""Commands on the examples' pages."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowq.tools.migrate import migrate
from tests.docs.test_examples import run_page
from tests.engines.base import Server
from tests.examples.programs import EXAMPLES, language, languages

pytestmark = pytest.mark.slow("executes the examples' pages", ci=False)

PAGES = [
    page.parent.name
    for page in sorted(EXAMPLES.glob("*/README.md"))
    if "```console\n" in page.read_text(encoding="utf-8")
]


@pytest.fixture
def directory(
    page: str,
    server: Server,
    empty_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Yield the directory for the commands of a page, with compiled programs."""
    if page not in languages():
        # The page's commands create Alembic's revisions of rowq.
        made = shutil.ignore_patterns("__pycache__", ".pytest_cache", "rowq")
        yield shutil.copytree(EXAMPLES / page, tmp_path / page, ignore=made)
        return
    programs = language(page).programs(server, empty_database, tmp_path)
    for name, value in programs.environment.items():
        monkeypatch.setenv(name, value)
    yield programs.directory
    programs.close()


@pytest.mark.requires("psql")
@pytest.mark.parametrize("page", PAGES)
def test_page_commands_print_the_shown_output(
    page: str, server: Server, empty_database: str, directory: Path
) -> None:
    migrate(empty_database)
    run_page(f"docs/examples/{page}/README.md", server, empty_database, directory)
