"""Each pitfall of an engine has a test with its number."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
MARKER = re.compile(r"mark\.pitfall\(([^)]*)\)")
NAMED = {
    word
    for path in TESTS.rglob("test_*.py")
    for names in MARKER.findall(path.read_text(encoding="utf-8"))
    for word in re.findall(r'"([^"]+)"', names)
}


@pytest.mark.parametrize("engine", ["postgres", "mysql", "sqlserver", "oracle"])
def test_pitfalls_and_markers_agree(engine: str) -> None:
    page = (TESTS / "engine_only" / "README.md").read_text(encoding="utf-8")
    page = page.partition(f"\n## {engine}\n")[2].partition("\n## ")[0]
    listed = [f"{engine} {number}" for number in re.findall(r"^(\d+)\. ", page, re.MULTILINE)]
    assert listed == [f"{engine} {number + 1}" for number in range(len(listed))]
    assert {word for word in NAMED if word.partition(" ")[0] == engine} == set(listed)
