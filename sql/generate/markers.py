"""Generated parts of files that are otherwise written by hand.

A line of comment before and one behind such a part name it, in Markdown

    <!-- rights: generated from contract.toml by make generate -->
    <!-- end of rights -->

and in SQL the same after "--", in Python after "#", in JavaScript after "//". A part is indented as
the line before it.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

Parts = Mapping[str, Callable[[], str]]
"""Name of a part, and what returns its lines."""


def fresh(file: Path, parts: Parts) -> str:
    """Return the text of a file with its generated parts as they should be today.

    Raises:
        ValueError: the file has no such part, or several.
    """
    text = file.read_text(encoding="utf-8")
    for name, make in parts.items():
        found = list(_part(name).finditer(text))
        if len(found) != 1:
            raise ValueError(f"{file.name} has {len(found)} generated parts with the name {name}")
        made = re.sub(r"^(?=.)", found[0]["indent"], make(), flags=re.MULTILINE)
        start, end = found[0].span("made")
        text = f"{text[:start]}{made}{text[end:]}"
    return text


def by_hand(text: str) -> str:
    """Return a text without what is generated in it."""
    start = 0
    kept = []
    for found in _part(r"(?P<name>\w+)", "(?P=name)").finditer(text):
        kept.append(text[start : found.start("made")])
        start = found.end("made")
    return "".join([*kept, text[start:]])


def _part(name: str, end: str | None = None) -> re.Pattern[str]:
    return re.compile(
        rf"^(?P<indent> *)(?:<!--|--|#|//) {name}: generated\b[^\n]*\n(?P<made>.*?)"
        rf"^ *(?:<!--|--|#|//) end of {end or name}\b",
        re.MULTILINE | re.DOTALL,
    )
