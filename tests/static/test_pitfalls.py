"""The tables of what is particular about each engine name tests that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PITFALLS = {"postgres": 27, "mysql": 24, "sqlserver": 18, "oracle": 47}


@pytest.mark.parametrize(("engine", "pitfalls"), PITFALLS.items())
def test_every_test_that_the_table_of_pitfalls_names_exists(engine: str, pitfalls: int) -> None:
    page = (TESTS / "engine_only" / engine / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_/]+\.py)(?:::(\w+))?`", page)
    assert len(re.findall(r"^\| \d+ \|", page, re.MULTILINE)) == pitfalls
    assert len(named) > pitfalls
    for path, name in named:
        text = (TESTS / path).read_text(encoding="utf-8")
        assert not name or f"\ndef {name}(" in text, name
