"""Generated files are current, say so in their first line, and are in .gitattributes."""

import re
import subprocess
from pathlib import Path

import pytest

from sql.generate.files import BUILT, FILES, TWINS, is_fresh
from sql.generate.markers import fresh
from tests.static.each import for_each
from tests.static.sources import ROOT, files

NOTE = re.compile(r"(Generated|Assembled) from .+ by (make generate|python -m [\w.]+)\b")
# JSON and sums have no comments, and a release's script begins with client commands.
WITHOUT_NOTE = re.compile(r".*\.json|migrations/.*|.*/SHA256SUMS")


def has_note(name: str) -> bool:
    """Return whether the first line of a file names its source and its generator."""
    with (ROOT / name).open("rb") as file:
        return NOTE.search(file.readline().decode("utf-8", "replace")) is not None


def marked() -> set[str]:
    """Return the files that .gitattributes marks as generated."""
    return files(":(attr:linguist-generated)")


@for_each(FILES.keys() - TWINS)
def test_generated_file_is_fresh(name: str) -> None:
    assert is_fresh(name), "run: make generate"


@pytest.mark.parametrize("name", TWINS)
def test_twin_is_fresh(name: str) -> None:
    assert is_fresh(name), "run: make generate"


def test_generated_part_is_indented_like_its_markers(tmp_path: Path) -> None:
    file = tmp_path / "list.sql"
    file.write_text("a\n  -- names: generated\n  old\n  -- end of names\nb\n", encoding="utf-8")
    text = fresh(file, {"names": lambda: "new\n\n  more\n"})
    assert text == "a\n  -- names: generated\n  new\n\n    more\n  -- end of names\nb\n"
    with pytest.raises(ValueError, match=r"list\.sql has 0 generated parts with the name nams"):
        fresh(file, {"nams": str})


def test_file_marked_as_generated_has_the_note() -> None:
    assert {"sql/CONTRACT.md", "python_client/rowq/queue.py", "benchmarks/RESULTS.md"} <= marked()
    able = {name for name in marked() if not WITHOUT_NOTE.fullmatch(name)}
    assert [name for name in sorted(able) if not has_note(name)] == []


@pytest.mark.parametrize("name", [*BUILT, "build/citus/forward.sql"])
def test_built_file_is_not_committed(name: str) -> None:
    assert name not in files()
    assert not files("--", name)
    ignored = subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_file_with_the_note_is_marked_as_generated() -> None:
    assert [name for name in sorted(files() - marked()) if has_note(name)] == []
