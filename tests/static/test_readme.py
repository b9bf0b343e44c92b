"""Every page's links lead somewhere."""

import re
from collections.abc import Iterable

import pytest

from rowq.contract import load_contract
from tests.static.sources import ENGINES, ROOT

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "*/*.md", "*/*/*.md", "sql/*/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.relative_to(ROOT).parts[0].startswith(".")
]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [name for name in targets if not (ROOT / page).parent.joinpath(name).exists()]
    assert not missing


NUMBERS = {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12}


def test_the_page_on_adding_a_routine_counts_the_files_that_a_routine_is_made_of() -> None:
    page = (ROOT / "sql" / "README.md").read_text(encoding="utf-8")
    listed = page.partition("## Adding a routine\n")[2].partition("\nThen `make generate`")[0]
    said = re.search(r"At most (\w+) files by hand", listed)
    assert said
    assert len(files_in(listed, ENGINES)) == NUMBERS[said[1]]
    for name, routine in load_contract().routines.items():
        files = files_in(listed, routine.engines or ENGINES)
        missing = [file for file in files if not (ROOT / file.replace("<name>", name)).is_file()]
        assert not missing, name


def files_in(listed: str, engines: Iterable[str]) -> set[str]:
    """Return the files that the page names, for these engines."""
    return {
        path.replace("<engine>", engine)
        for path in re.findall(r"`([\w/.<>]+\.[a-z]+)`", listed)
        for engine in (engines if "<engine>" in path else [""])
    }
