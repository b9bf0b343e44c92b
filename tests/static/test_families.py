"""Helpers are in families, the same on every engine, and the head of a file describes them."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from rowq.tools.migrate.sources import file_units
from sql.generate.install import FAMILIES
from tests.static.each import for_each
from tests.static.sources import ENGINES, SQL, sql_files, sql_units

FILES = [
    (engine, path)
    for engine in ENGINES
    for path in sql_files(engine, "internal")
    if path.stem in FAMILIES
]


def head(path: Path) -> str:
    """Return the comment at the start of a file."""
    return path.read_text(encoding="utf-8").partition("\n\n")[0]


def helpers(path: Path) -> list[str]:
    """Return the names of a file's helpers."""
    text = path.read_text(encoding="utf-8")
    return [name.partition("/")[2] for name in file_units(f"internal/{path.name}", text)]


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_has_exactly_the_families(engine: str) -> None:
    beside = ["types"] if engine == "oracle" else []
    found = [path.stem for path in sql_files(engine, "internal")]
    assert found == sorted([*FAMILIES, *beside])
    assert not (SQL / engine / "tables").exists()


def test_helper_is_in_same_family_on_all_engines() -> None:
    families: dict[str, set[str]] = defaultdict(set)
    for _, path in FILES:
        for name in helpers(path):
            families[name].add(path.stem)
    assert {name: found for name, found in families.items() if len(found) > 1} == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_unit_names_are_unique(engine: str) -> None:
    names = [str(unit) for unit in sql_units(engine)]
    assert len(set(names)) == len(names)


@for_each(FILES)
def test_family_begins_with_idea_and_calls(engine: str, path: Path) -> None:
    lines = head(path).splitlines()
    assert all(line.startswith("--") for line in lines), engine
    assert re.match(rf"-- {path.stem.capitalize()}: .+\.$", lines[0])
    assert 5 <= len(lines) <= 40


@for_each(FILES)
def test_head_of_family_names_all_its_helpers(engine: str, path: Path) -> None:
    named = set(re.findall(r"\w+", head(path)))
    assert set(helpers(path)) <= named, engine


@for_each(FILES)
def test_calls_in_head_name_existing_helpers(engine: str, path: Path) -> None:
    """Each name after an arrow is a helper of the family."""
    calls = "\n".join(line for line in head(path).splitlines() if line.startswith("--   "))
    calls = re.sub(r"\n-- {7,}", " ", calls)
    after = [names for line in calls.splitlines() for names in line.split(" -> ")[1:]]
    called = {name.strip() for names in after for name in names.split(",")} - {"..."}
    assert called <= set(helpers(path)), engine
