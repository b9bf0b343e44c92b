"""Every page's links lead somewhere."""

import re

import pytest

from tests.static.sources import ROOT

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "*/*.md", "*/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.relative_to(ROOT).parts[0].startswith(".")
]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [name for name in targets if not (ROOT / page).parent.joinpath(name).exists()]
    assert not missing
