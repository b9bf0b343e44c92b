"""Generated parts of files that are otherwise written by hand.

A comment before and one after a part name it, in Markdown

    <!-- rights: generated from contract.toml by make generate -->
    <!-- end of rights -->

and in SQL after "--", in Python after "#", in JavaScript after "//". A part is indented like the
line before it.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

Parts = Mapping[str, Callable[[], str]]
"""Functions that return the lines of each part, by name."""


def fresh(file: Path, parts: Parts) -> str:
    """Return a file's text with current parts; raise ValueError if one is missing or repeated."""
    return renewed(file.read_text(encoding="utf-8"), parts, file.name)


def renewed(text: str, parts: Parts, file_name: str) -> str:
    """Return a text with current parts; see fresh."""
    for name, make in parts.items():
        found = list(_part(name).finditer(text))
        if len(found) != 1:
            raise ValueError(f"{file_name} has {len(found)} generated parts with the name {name}")
        made = re.sub(r"^(?=.)", found[0]["indent"], make(), flags=re.MULTILINE)
        start, end = found[0].span("made")
        text = f"{text[:start]}{made}{text[end:]}"
    return text


def by_hand(text: str) -> str:
    """Return a text without its generated parts."""
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
