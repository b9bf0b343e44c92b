"""SQL files with named sections."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_HEAD = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)


@cache
def read_sections(path: Path) -> dict[str, str]:
    """Return the text of each section of a file, without the `;` at its end."""
    _, *parts = _HEAD.split(path.read_text("utf-8"))
    names, texts = parts[::2], parts[1::2]
    return {name: text.strip().removesuffix(";") for name, text in zip(names, texts, strict=True)}
