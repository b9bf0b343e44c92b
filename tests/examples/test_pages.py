"""Every command on the pages of the examples prints what they show."""

import shutil
from pathlib import Path

import pytest

from rowq.migrate import migrate
from tests.docs.test_examples import run_page
from tests.engines.base import Server
from tests.examples.programs import EXAMPLES, language, languages

PAGES = [
    page.parent.name
    for page in sorted(EXAMPLES.glob("*/README.md"))
    if "```console\n" in page.read_text(encoding="utf-8")
]


@pytest.mark.requires("psql")
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_print_what_it_says(
    page: str,
    server: Server,
    empty_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = tmp_path / page
    if page in languages():
        programs = language(page).programs(server, empty_database, tmp_path)
        directory = programs.directory
        for name, value in programs.environment.items():
            monkeypatch.setenv(name, value)
    else:
        shutil.copytree(EXAMPLES / page, directory)
    migrate(empty_database)
    run_page(f"examples/{page}/README.md", server, empty_database, directory)
