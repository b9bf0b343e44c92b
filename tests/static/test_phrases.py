"""Dead phrases: counts of private English per folder, which may only fall.

Show where they are: python -m tests.static.test_phrases [PATH ...].
"""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.static.each import for_each
from tests.static.sources import ROOT, files

_TABLE = Path(__file__).with_name("dead_phrases.toml")
_NOT_READ = re.compile(
    r"\.(?:min\.\w+|png|xz|svg)$|LICENSE$|^tests/static/(?:dead_phrases\.toml|plsql/accepted\.txt)$"
)
"""Files of others, pictures, and the list of the phrases itself."""

PHRASES = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["phrase"]


def folder_of(name: str) -> str:
    """Return the top-level folder of a file, or root."""
    return name.partition("/")[0] if "/" in name and not name.startswith(".") else "root"


@cache
def _texts() -> dict[str, str]:
    return {
        name: Path(ROOT, name).read_text(encoding="utf-8")
        for name in files()
        if not _NOT_READ.search(name)
    }


def _found(pattern: str, text: str) -> Iterator[re.Match[str]]:
    return re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE)


@for_each((phrase["name"], phrase["pattern"], phrase["counts"]) for phrase in PHRASES)
def test_dead_phrase_does_not_come_back(name: str, pattern: str, counts: dict[str, int]) -> None:
    found = Counter(
        folder_of(file) for file, text in _texts().items() for _ in _found(pattern, text)
    )
    more = {folder: number for folder, number in found.items() if number > counts.get(folder, 0)}
    assert not more, f'"{name}": {more}, allowed are {counts}; see tests/static/dead_phrases.toml'


def main() -> None:
    """Print the dead phrases in the files whose path begins with an argument."""
    for file, text in _texts().items():
        if file.startswith(tuple(sys.argv[1:]) or ""):
            for phrase in PHRASES:
                for match in _found(phrase["pattern"], text):
                    line = text.count("\n", 0, match.start()) + 1
                    print(f"{file}:{line}: {phrase['class']} {match[0].strip()!r}")


if __name__ == "__main__":
    main()
