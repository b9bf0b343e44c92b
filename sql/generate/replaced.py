"""The scripts for Citus: each version replaces all of them, so no released migration holds them.

They may change from one version to the next, and none does so without a word: their sums are those
of the newest release, and what differs from it asks for a line in CHANGELOG.md that names Citus.
"""

from pathlib import Path

from sql.generate.changelog import UNRELEASED, unreleased
from sql.generate.sums import SUMS, read_sums, sums_of, write_sums

FOLDER = "sql/postgres/citus"


def faults_of_replaced(root: Path) -> list[str]:
    """Return which scripts are not as they were released where CHANGELOG.md is silent about it."""
    folder = root / FOLDER
    released, today = read_sums(folder), sums_of(folder, _names(folder))
    changed = sorted(dict(released.items() ^ today.items()))
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not released or not changed or "Citus" in unreleased(text):
        return []
    return [
        f"{FOLDER}: {', '.join(changed)} not as released, and CHANGELOG.md has no line about Citus"
        f" below {UNRELEASED}"
    ]


def release_replaced(root: Path) -> str:
    """Write the sums of today's scripts, and return where they are."""
    folder = root / FOLDER
    write_sums(folder, sums_of(folder, _names(folder)))
    return f"{FOLDER}/{SUMS}"


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.sql")]
