"""The generated parts of README.md are up to date, and every page's links lead somewhere."""

import re

import pytest

from generate_readme import README, fresh
from tests.static.sources import ROOT

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "*/*.md", "*/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.relative_to(ROOT).parts[0].startswith(".")
]


def test_its_generated_parts_are_what_make_generate_writes() -> None:
    assert README.read_text(encoding="utf-8") == fresh(), "run: make generate"


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [name for name in targets if not (ROOT / page).parent.joinpath(name).exists()]
    assert not missing
