"""Today's SQL of an engine: the files of sql/<engine>, in the order of its install.sql.

tables.sql and the families of helpers in internal/ are files of many units. A unit is what one
`create` makes, with the comment above it and what follows up to the next one, such as a table's
indexes. It is named after what it makes, in whichever file that stands: tables/queue,
internal/admit. So a migration brings the units that have changed, and not whole files.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from rowq.engines import TOOLS, engine_module

TABLES = "tables.sql"
INTERNAL = "internal"

# Scripts of the migrations are run around the sources, and are none.
_INCLUDE = re.compile(r"^(?:(?:\\ir|-- source|:r) +|@@)(?!\.\./)(\S+)$", re.MULTILINE)

# A line that begins a unit. On SQL Server a condition may stand above it, on MySQL a drop.
_MADE = re.compile(
    r"^(?:drop procedure if exists (?P<dropped>rowq\.\w+);\n\ndelimiter //\n)?"
    r"(?P<guard>if [^\n]* is null\n|if not exists \([^\n]*\)\n)?"
    r"(?:create (?:or replace |or alter )?"
    r"(?:table|sequence|type|partition function|function|procedure)"
    r" (?:if not exists )?|(?:procedure|function) )(?P<name>(?:rowq\.|rowq_)?\w+)",
    re.MULTILINE,
)
_PLACE = re.compile(r"^( *)\{\{ (\w+) \}\}\n", re.MULTILINE)
SESSION_SETTINGS = "set quoted_identifier on;\nset ansi_nulls on;\ngo\n"
"""What SQL Server keeps with each procedure: once in a file, and in each unit."""
_PASCAL = re.compile(r"(?<!^)(?=[A-Z])")


def read(path: Path) -> str:
    """Return a file's text with plain line ends, whatever git made of them."""
    return path.read_text(encoding="utf-8")


def filled(template: str, texts: Mapping[str, Callable[[], str]]) -> str:
    """Return a template with a text in each of its places, which are lines such as {{ name }}."""
    return _PLACE.sub(lambda place: textwrap.indent(texts[place[2]](), place[1]), template)


def sources(folder: Path) -> dict[str, str]:
    """Return path and text of everything that an engine installs, in the order of installation.

    Of files with many units it is name and text of each. What install.sql names and is no file is
    assembled from the files, such as Oracle's packages.

    Args:
        folder: sql/<engine>, with contract.toml beside it.
    """
    texts: dict[str, str] = engine_module(folder.name, "script", TOOLS).SCRIPT.assembled(folder)
    found: dict[str, str] = {}
    for path in _INCLUDE.findall(read(folder / "install.sql")):
        text = texts[path] if path in texts else read(folder / path)
        found |= file_units(path, text) if has_units(path) else {path: text}
    return found


def has_units(path: str) -> bool:
    """Return whether a file, by its path in sql/<engine>, is one of many units."""
    return path == TABLES or path.startswith(f"{INTERNAL}/")


def file_units(path: str, text: str) -> dict[str, str]:
    """Return name and text of the units of a file, in their order.

    What stands before the first one is no unit. In tables.sql it is the schema, if it
    does something.

    Args:
        path: the file's path in sql/<engine>.
        text: what it holds.

    Raises:
        ValueError: two units would have one name.
    """
    found = list(_split(path.partition("/")[0].removesuffix(".sql"), text))
    if len(dict(found)) != len(found):
        raise ValueError(f"{path} makes something twice")
    return dict(found)


def _split(room: str, text: str) -> Iterator[tuple[str, str]]:
    is_sqlserver = SESSION_SETTINGS in text
    text = text.replace(SESSION_SETTINGS, "", 1)
    made = list(_MADE.finditer(text))
    begins = [_begin(text, match) for match in made]
    before = text[: begins[0]] if begins else text
    does = any(line and not line.startswith("--") for line in before.splitlines())
    made_first = [("schema", before)] if room == "tables" and does else []
    names = [_stem(match["name"]) for match in made]
    texts = [text[begin:end] for begin, end in pairwise([*begins, len(text)])]
    for name, unit in [*made_first, *zip(names, texts, strict=True)]:
        whole = f"{unit.strip()}\n"
        if is_sqlserver:
            comment = re.match(r"(?:--[^\n]*\n)*", whole)
            end = comment.end() if comment else 0
            whole = f"{whole[:end]}{SESSION_SETTINGS}{whole[end:]}"
        yield f"{room}/{name}", whole


def _begin(text: str, match: re.Match[str]) -> int:
    """Return where the unit of a statement begins: with the comment right above it."""
    begin = match.start()
    while begin and text.startswith("--", above := text.rfind("\n", 0, begin - 1) + 1):
        begin = above
    return begin


def _stem(name: str) -> str:
    """Return the name of a unit from that of what it makes."""
    plain = name.removeprefix("rowq.").removeprefix("rowq_")
    if plain[0].isupper():
        plain = _PASCAL.sub("_", plain).lower()
    return plain.removeprefix("internal_")


def sources_of(migrations: Path) -> Path:
    """Return the folder of sources that belongs to a folder of migrations.

    The directories sql and migrations stand side by side, in a checkout and in a wheel.
    """
    return migrations.parent.parent / "sql" / migrations.name
