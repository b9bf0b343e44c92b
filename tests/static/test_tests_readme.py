"""The page about the tests names tests of faults that exist, and leaves none out."""

import re

import pytest

from tests.static.sources import ROOT

TESTS = ROOT / "tests"
_PAGE = (TESTS / "README.md").read_text(encoding="utf-8")
FAULTS = _PAGE.partition("\n## Faults\n")[2].partition("\n## ")[0]
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)`", FAULTS)))


def test_the_page_has_a_table_of_faults() -> None:
    assert len(NAMED) > 10


@pytest.mark.parametrize("name", NAMED)
def test_every_test_of_a_fault_that_is_named_exists(name: str) -> None:
    text = (TESTS / name).read_text(encoding="utf-8")
    assert "/test_" not in name or "\ndef test_" in text


def test_every_file_of_chaos_and_concurrency_is_named() -> None:
    there = {
        path.relative_to(TESTS).as_posix()
        for folder in ("chaos", "concurrency")
        for path in (TESTS / folder).glob("test_*.py")
    }
    assert there <= set(NAMED)
