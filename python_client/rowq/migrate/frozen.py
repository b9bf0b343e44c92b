"""Frozen copies: the SQL files as they were when a migration was written.

A migration pg-0002-slug.py has its copies in the folder 0002 beside it, under the paths that they
have in sql/<engine>, and 0002/order.txt lists them in the order of installation. Every file is
idempotent and is run as a whole. What a migration does not copy stays as the newest earlier one
left it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ORDER = "order.txt"
GRANTS = "grants.sql"

_CREATED = re.compile(
    r"^create (?:or replace |or alter )?"
    r"(table|sequence|function|procedure|view|type|package body|package)"
    r" (?:if not exists )?(rowq(?:\.\w+|\w*))",
    re.MULTILINE,
)
# Oracle has no schema of ours, and units that end with a line of their own.
_DROPS = {
    "package": "drop package {name}\n/",
    "package body": "drop package body {name}\n/",
    "sequence": "drop sequence {name}\n/",
    "table": "drop table {name} cascade constraints purge\n/",
    "type": "drop type {name} force\n/",
}


def order(folder: Path) -> list[str]:
    """Return the relative paths of a migration's copies, in the order of installation."""
    listed = folder / ORDER
    return listed.read_text(encoding="utf-8").split() if listed.exists() else []


def folders(root: Path, newest: int) -> list[Path]:
    """Return the folders of copies below `root` with numbers up to `newest`, in their order."""
    found = (path for path in root.glob("[0-9][0-9][0-9][0-9]") if path.is_dir())
    return sorted(path for path in found if int(path.name) <= newest)


def newest_copies(root: Path, newest: int) -> dict[str, Path]:
    """Return for every relative path its newest copy in the migrations up to `newest`."""
    copies: dict[str, Path] = {}
    for folder in folders(root, newest):
        copies.update((relative, folder / relative) for relative in order(folder))
    return copies


def read(path: Path) -> str:
    """Return a file's text with plain line ends, whatever git made of them."""
    return path.read_text(encoding="utf-8")


def created(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of everything that the text of a file creates."""
    for match in _CREATED.finditer(text):
        yield match.group(1), match.group(2).removeprefix("rowq.")


def drops(text: str) -> str:
    """Return the statements that remove what the text of a file creates, last one first."""
    statements = [_drop(match.group(1), match.group(2)) for match in _CREATED.finditer(text)]
    return "\n".join(reversed(statements))


def _drop(kind: str, name: str) -> str:
    if name.startswith("rowq."):
        return f"drop {kind} if exists {name};"
    return _DROPS[kind].format(name=name)
