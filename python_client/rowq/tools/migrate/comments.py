"""Comments of routines, tables and columns in the server's catalog, from the contract.

comments.sql, which every migration runs, is generated from sql/<engine>/comments.sql.in. On MariaDB
and MySQL the comments are part of the definitions.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rowq.contract import load_contract, raw_contract
from rowq.tools.migrate.sources import TABLES, filled, read

COMMENTS = "comments.sql"

_COLUMN = re.compile(r"^    (\w+) +[a-z]", re.MULTILINE)
NO_COLUMN = {"constraint", "key", "primary", "unique", "using"}
TABLE = re.compile(
    r"^create table (?:if not exists )?rowq[._](\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL
)


def script(sources: Path, lines: str) -> dict[str, str]:
    """Return name and text of an engine's script with these lines inserted."""
    return {COMMENTS: filled(read(sources / f"{COMMENTS}.in"), {"comments": lambda: lines})}


def described(sources: Path) -> list[tuple[str, str, str, str]]:
    """Return kind, name, column and meaning of everything an engine's catalog describes."""
    return [
        *(("routine", name, "", text) for name, text in routines(sources).items()),
        *(("table", name, "", text) for name, text in tables(sources).items()),
        *(("column", *place, text) for place, text in columns(sources).items()),
    ]


def routines(sources: Path) -> dict[str, str]:
    """Return the purpose of every routine of an engine, by its name in the contract."""
    every = load_contract(sources.parent).of(sources.name)
    return {name: one.purpose for name, one in every.items()}


def tables(sources: Path) -> dict[str, str]:
    """Return the description of every table of an engine, by its name without the prefix."""
    known = raw_contract(sources.parent)["tables"]
    return {table: known[table] for table, _ in _tables(sources)}


def columns(sources: Path) -> dict[tuple[str, str], str]:
    """Return the meaning of every column of every table of an engine."""
    return {
        (table, column): meaning(sources, table, column)
        for table, names in _tables(sources)
        for column in names
    }


def meaning(sources: Path, table: str, column: str) -> str:
    """Return the meaning of a column; raise KeyError if the contract has none."""
    contract = raw_contract(sources.parent)
    own = contract["table_columns"]
    found = own.get(f"{table}.{column}") or own.get(column)
    if not found and column not in contract["columns"]:
        raise KeyError(f"contract.toml does not describe the column {table}.{column}")
    return str(found or contract["columns"][column]["meaning"])


def rows(listed: Sequence[tuple[str, ...]], prefix: str = "") -> str:
    """Return rows of literals for a VALUES list, each literal with a prefix."""
    texts = (", ".join(prefix + literal(word) for word in row) for row in listed)
    return ",\n".join(f"({row})" for row in texts) + "\n"


def literal(text: str) -> str:
    """Return a text as an SQL literal; the contract's texts have no backslash."""
    return "'" + text.replace("'", "''") + "'"


def _tables(sources: Path) -> Iterator[tuple[str, list[str]]]:
    for table, inner in sorted(TABLE.findall(read(sources / TABLES))):
        yield table, [name for name in _COLUMN.findall(inner) if name not in NO_COLUMN]
