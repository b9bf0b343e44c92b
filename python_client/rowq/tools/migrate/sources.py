"""Today's SQL of an engine: the files of sql/<engine>, in the order of its install.sql."""

import re
from pathlib import Path

from rowq.engines import TOOLS, part_of

# Scripts of the migrations are run around the sources, and are none.
_INCLUDE = re.compile(r"^(?:(?:\\ir|-- source|:r) +|@@)(?!\.\./)(\S+)$", re.MULTILINE)


def read(path: Path) -> str:
    """Return a file's text with plain line ends, whatever git made of them."""
    return path.read_text(encoding="utf-8")


def sources(folder: Path) -> dict[str, str]:
    """Return path and text of everything that an engine installs, in the order of installation.

    What install.sql names and is no file is assembled from the files, such as Oracle's packages.

    Args:
        folder: sql/<engine>, with contract.toml beside it.
    """
    texts: dict[str, str] = part_of(folder.name, "script", TOOLS).SCRIPT.assembled(folder)
    return {
        path: texts[path] if path in texts else read(folder / path)
        for path in _INCLUDE.findall(read(folder / "install.sql"))
    }


def sources_of(migrations: Path) -> Path:
    """Return the folder of sources that belongs to a folder of migrations.

    The directories sql and migrations stand side by side, in a checkout and in a wheel.
    """
    return migrations.parent.parent / "sql" / migrations.name
