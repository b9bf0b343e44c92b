"""The generated parts of pages are up to date, and every page's links lead somewhere."""

import re
from pathlib import Path

import pytest

import generate_readme
from generate_readme import fresh
from tests.static.sources import ROOT

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "*/*.md", "*/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.relative_to(ROOT).parts[0].startswith(".")
]


@pytest.mark.parametrize("page", generate_readme.PAGES, ids=lambda page: page.name)
def test_generated_parts_are_what_make_generate_writes(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == fresh(page), "run: make generate"


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [name for name in targets if not (ROOT / page).parent.joinpath(name).exists()]
    assert not missing
