"""The repository stays small: each folder has a budget of lines and of files.

Raise a number in a commit that says why. When a folder shrinks, lower its number.
"""

from pathlib import Path

from tests.static.each import for_each
from tests.static.sources import ROOT, files

_TOP_LEVEL = {
    ".ci", ".dockerignore", ".editorconfig", ".gitattributes", ".github", ".gitignore",
    "CHANGELOG.md", "Dockerfile", "LICENSE",
    "Makefile", "README.md", "benchmarks", "compose.yaml", "docs", "migrations", "pyproject.toml",
    "python_client", "sql", "tests",
}  # fmt: skip
"""Entries of the top level: folders of the product, and files that tools need there."""

BUDGETS = {
    "": (234_700, 1_533),
    "benchmarks": (8_520, 80),
    "docs": (9_300, 121),
    "migrations": (1_480, 36),
    "python_client": (38_200, 250),
    "python_client/rowq/contrib": (7_130, 44),
    "python_client/rowq/engines": (3_550, 29),
    "python_client/rowq/tools": (12_300, 85),
    "python_client/rowq/web": (4_070, 47),
    "python_client/rowq/worker": (6_620, 28),
    "sql": (75_900, 384),
    "sql/generate": (2_410, 22),
    "sql/mysql": (18_450, 78),
    "sql/oracle": (14_340, 86),
    "sql/postgres": (14_240, 82),
    "sql/postgres/addons": (6_430, 30),
    "sql/sqlserver": (16_830, 80),
    "tests": (100_400, 664),
}
"""Lines and files of a folder with all below it; add-ons count for their own folder only."""


def _lines(name: str) -> int:
    """Return the lines of a text; a picture and a compressed file have none."""
    data = Path(ROOT, name).read_bytes()
    return 0 if b"\0" in data else data.count(b"\n")


def _counted(folder: str, name: str) -> bool:
    if folder == "sql/postgres" and name.startswith("sql/postgres/addons/"):
        return False
    return name.startswith(f"{folder}/") if folder else True


@for_each(BUDGETS.items())
def test_a_folder_keeps_its_budget(folder: str, budget: tuple[int, int]) -> None:
    names = [name for name in files() if _counted(folder, name)]
    found = sum(map(_lines, names)), len(names)
    assert found[0] <= budget[0], f"{folder or 'all'}: {found[0]} lines, its budget is {budget[0]}"
    assert found[1] <= budget[1], f"{folder or 'all'}: {found[1]} files, its budget is {budget[1]}"


def test_the_top_level_gets_no_new_entry() -> None:
    assert {name.partition("/")[0] for name in files()} <= _TOP_LEVEL
