"""A file that a program writes is fresh, says so in its first line, and .gitattributes marks it."""

import re
import subprocess
from pathlib import Path

import pytest

from sql.generate.files import BUILT, FILES, TWINS, is_fresh
from sql.generate.markers import fresh
from tests.static.each import for_each
from tests.static.sources import ROOT, files

SAYS_SO = re.compile(r"(Generated|Put together) from .+ by (make generate|python -m [\w.]+)\b")
# JSON and sums have no comments, and a release's script begins with what its client reads first.
CANNOT_SAY_SO = re.compile(r".*\.json|migrations/.*|.*/SHA256SUMS")


def says_so(name: str) -> bool:
    """Return whether the first line of a file tells from what it is made, and how."""
    with (ROOT / name).open("rb") as file:
        return SAYS_SO.search(file.readline().decode("utf-8", "replace")) is not None


def marked() -> set[str]:
    """Return the files that .gitattributes marks as generated."""
    return files(":(attr:linguist-generated)")


@for_each(FILES.keys() - TWINS)
def test_a_generated_file_is_what_make_generate_writes(name: str) -> None:
    assert is_fresh(name), "run: make generate"


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_what_make_generate_writes(name: str) -> None:
    assert is_fresh(name), "run: make generate"


def test_a_part_is_written_between_its_marks_and_indented_like_them(tmp_path: Path) -> None:
    file = tmp_path / "list.sql"
    file.write_text("a\n  -- names: generated\n  old\n  -- end of names\nb\n", encoding="utf-8")
    text = fresh(file, {"names": lambda: "new\n\n  more\n"})
    assert text == "a\n  -- names: generated\n  new\n\n    more\n  -- end of names\nb\n"
    with pytest.raises(ValueError, match=r"list\.sql has 0 generated parts with the name nams"):
        fresh(file, {"nams": str})


def test_every_file_that_is_marked_as_generated_says_so() -> None:
    assert {"sql/CONTRACT.md", "python_client/rowq/queue.py", "benchmarks/RESULTS.md"} <= marked()
    able = {name for name in marked() if not CANNOT_SAY_SO.fullmatch(name)}
    assert [name for name in sorted(able) if not says_so(name)] == []


@pytest.mark.parametrize("name", [*BUILT, "build/citus/carry.sql"])
def test_a_file_that_is_built_where_it_is_needed_is_in_no_commit(name: str) -> None:
    assert name not in files()
    assert not files("--", name)
    ignored = subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_every_file_that_says_it_is_generated_is_marked() -> None:
    assert [name for name in sorted(files() - marked()) if says_so(name)] == []
