"""The present SQL of an engine: the files of sql/<engine>, in the order of install.sql.

tables.sql and the families of helpers in internal/ consist of units. A unit is one `create`, the
comment above it, and everything up to the next unit, such as a table's indexes. It is named after
its object, independent of the file: tables/queue, internal/admit. So a migration contains only the
units that have changed.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from rowq.engines import TOOLS, engine_module

TABLES = "tables.sql"
INTERNAL = "internal"

# install.sql also runs scripts of ../migrations, which are not sources.
_INCLUDE = re.compile(r"^(?:(?:\\ir|-- source|:r) +|@@)(?!\.\./)(\S+)$", re.MULTILINE)

# The start of a unit: on SQL Server with a condition above it, on MySQL with a drop.
_CREATED = re.compile(
    r"^(?:drop procedure if exists (?P<dropped>rowq\.\w+);\n\ndelimiter //\n)?"
    r"(?P<guard>if [^\n]* is null\n|if not exists \([^\n]*\)\n)?"
    r"(?:create (?:or replace |or alter )?"
    r"(?:table|sequence|type|partition function|function|procedure)"
    r" (?:if not exists )?|(?:procedure|function) )(?P<name>(?:rowq\.|rowq_)?\w+)",
    re.MULTILINE,
)
_PLACE = re.compile(r"^( *)\{\{ (\w+) \}\}\n", re.MULTILINE)
SESSION_SETTINGS = "set quoted_identifier on;\nset ansi_nulls on;\ngo\n"
"""Settings that SQL Server stores with each procedure: once per file, and in each unit."""
_PASCAL = re.compile(r"(?<!^)(?=[A-Z])")


def read(path: Path) -> str:
    """Return a file's text with plain line ends."""
    return path.read_text(encoding="utf-8")


def filled(template: str, texts: Mapping[str, Callable[[], str]]) -> str:
    """Return a template with texts inserted for lines such as {{ name }}."""
    return _PLACE.sub(lambda match: textwrap.indent(texts[match[2]](), match[1]), template)


def sources(folder: Path) -> dict[str, str]:
    """Return path and text of everything that sql/<engine> installs, in order.

    A file of units yields name and text of each unit. Files that install.sql names but that do not
    exist, such as Oracle's packages, are generated.
    """
    texts: dict[str, str] = engine_module(folder.name, "script", TOOLS).SCRIPT.assembled(folder)
    found: dict[str, str] = {}
    for path in _INCLUDE.findall(read(folder / "install.sql")):
        text = texts[path] if path in texts else read(folder / path)
        found |= file_units(path, text) if has_units(path) else {path: text}
    return found


def has_units(path: str) -> bool:
    """Return whether a file, by its path in sql/<engine>, consists of units."""
    return path == TABLES or path.startswith(f"{INTERNAL}/")


def file_units(path: str, text: str) -> dict[str, str]:
    """Return name and text of the units of a file, in order; raise ValueError for a duplicate.

    Statements before the first unit of tables.sql are the unit "schema".
    """
    found = list(_split(path.partition("/")[0].removesuffix(".sql"), text))
    if len(dict(found)) != len(found):
        raise ValueError(f"{path} creates an object twice")
    return dict(found)


def _split(folder: str, text: str) -> Iterator[tuple[str, str]]:
    is_sqlserver = SESSION_SETTINGS in text
    text = text.replace(SESSION_SETTINGS, "", 1)
    created = list(_CREATED.finditer(text))
    begins = [_begin(text, match) for match in created]
    before = text[: begins[0]] if begins else text
    has_code = any(line and not line.startswith("--") for line in before.splitlines())
    schema = [("schema", before)] if folder == "tables" and has_code else []
    names = [_stem(match["name"]) for match in created]
    texts = [text[begin:end] for begin, end in pairwise([*begins, len(text)])]
    for name, unit in [*schema, *zip(names, texts, strict=True)]:
        whole = f"{unit.strip()}\n"
        if is_sqlserver:
            comment = re.match(r"(?:--[^\n]*\n)*", whole)
            end = comment.end() if comment else 0
            whole = f"{whole[:end]}{SESSION_SETTINGS}{whole[end:]}"
        yield f"{folder}/{name}", whole


def _begin(text: str, match: re.Match[str]) -> int:
    """Return the start of a unit, including the comment directly above it."""
    begin = match.start()
    while begin and text.startswith("--", above := text.rfind("\n", 0, begin - 1) + 1):
        begin = above
    return begin


def _stem(name: str) -> str:
    """Return the name of a unit from the name of its object."""
    plain = name.removeprefix("rowq.").removeprefix("rowq_")
    if plain[0].isupper():
        plain = _PASCAL.sub("_", plain).lower()
    return plain.removeprefix("internal_")


def sources_of(migrations: Path) -> Path:
    """Return the folder of sources for a folder of migrations, in a checkout or a wheel."""
    return migrations.parent.parent / "sql" / migrations.name
