"""Reads SQL files with named sections, which may be like those of another file."""

import re
from collections import ChainMap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import indent

_HEAD = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)
_LIKE = re.compile(r"^-- like: *([\w.]+) *$", re.MULTILINE)
_PART = re.compile(r"^( *)-- part: *(\w+) *\n", re.MULTILINE)


@cache
def read_sections(path: Path) -> dict[str, str]:
    """Return the text of each section of a file, without the `;` at its end.

    A file that is `like` another has its sections, too, and its own take the place of those. A line
    `-- part: <section>` stands for the text of a section, which is then none by itself.
    """
    files = [*_files(path)]
    texts = dict(ChainMap(*files))
    parts = {found[2] for file in files for text in file.values() for found in _PART.finditer(text)}

    def whole(text: str) -> str:
        return _PART.sub(lambda found: _indented(whole(texts[found[2]]), found[1]), text).strip()

    return {
        name: whole(text).removesuffix(";") for name, text in texts.items() if name not in parts
    }


def _files(path: Path) -> Iterator[dict[str, str]]:
    """Yield the sections of a file as they are written, then those of the file that it is like."""
    head, *parts = _HEAD.split(path.read_text("utf-8"))
    yield dict(zip(parts[::2], parts[1::2], strict=True))
    if like := _LIKE.search(head):
        yield from _files(path.with_name(like[1]))


def _indented(text: str, margin: str) -> str:
    """Return a part as it stands in its section; no line if there is nothing in it."""
    return indent(f"{text}\n", margin) if text else ""
