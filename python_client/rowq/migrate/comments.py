"""What a server's own catalog says of routines, tables and columns: the contract's words.

sql/<engine>/comments.sql.in is a script with a place for them. The script that every migration
runs, comments.sql, is no file: it is made of both. On MariaDB and MySQL a file says it itself.
"""

import re
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rowq.contract import load_contract
from rowq.migrate.sources import TABLES

COMMENTS = "comments.sql"

_PLACE = re.compile(r"^( *)\{\{ comments \}\}\n", re.MULTILINE)
_COLUMN = re.compile(r"^    (\w+) +[a-z]", re.MULTILINE)
NO_COLUMN = {"constraint", "key", "primary", "unique", "using"}
TABLE = re.compile(
    r"^create table (?:if not exists )?rowq[._](\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL
)


def filled(sources: Path, lines: str) -> dict[str, str]:
    """Return name and text of the script of an engine, with these lines in their place."""
    template = (sources / f"{COMMENTS}.in").read_text(encoding="utf-8")
    return {COMMENTS: _PLACE.sub(lambda place: textwrap.indent(lines, place[1]), template)}


def routines(sources: Path) -> dict[str, str]:
    """Return the purpose of every routine of an engine by its name in the contract.

    Args:
        sources: sql/<engine>, with contract.toml beside it.
    """
    purposes = _contract(sources.parent)["routine"]
    return {name: purposes[name]["purpose"] for name in load_contract().of(sources.name)}


def tables(sources: Path) -> dict[str, str]:
    """Return what the rows are of every table of an engine, by its name without the prefix.

    Raises:
        KeyError: the contract says nothing of a table.
    """
    known = _contract(sources.parent)["tables"]
    return {table: known[table] for table, _ in _tables(sources)}


def columns(sources: Path) -> dict[tuple[str, str], str]:
    """Return what every column of every table of an engine means.

    Raises:
        KeyError: the contract says nothing of a column.
    """
    return {
        (table, column): meaning(sources, table, column)
        for table, names in _tables(sources)
        for column in names
    }


def meaning(sources: Path, table: str, column: str) -> str:
    """Return what a column means; raises KeyError if the contract says nothing of it."""
    contract = _contract(sources.parent)
    own = contract["table_columns"]
    found = own.get(f"{table}.{column}") or own.get(column)
    if not found and column not in contract["columns"]:
        raise KeyError(f"contract.toml says nothing of the column {table}.{column}")
    return str(found or contract["columns"][column]["meaning"])


def rows(listed: Sequence[tuple[str, ...]], prefix: str = "") -> str:
    """Return rows of texts for a list of values, with a prefix for each literal."""
    texts = (", ".join(prefix + literal(word) for word in row) for row in listed)
    return ",\n".join(f"({row})" for row in texts) + "\n"


def literal(text: str) -> str:
    """Return a text as a literal of SQL; the contract's texts have no backslash."""
    return "'" + text.replace("'", "''") + "'"


@cache
def _contract(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "contract.toml").read_text(encoding="utf-8"))


def _tables(sources: Path) -> Iterator[tuple[str, list[str]]]:
    text = (sources / TABLES).read_text(encoding="utf-8")
    for table, inner in sorted(TABLE.findall(text)):
        yield table, [name for name in _COLUMN.findall(inner) if name not in NO_COLUMN]
