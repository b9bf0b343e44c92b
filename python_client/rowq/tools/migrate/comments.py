"""What a server's own catalog says of routines, tables and columns: the contract's words.

sql/<engine>/comments.sql.in is a script with a place for them. The script that every migration
runs, comments.sql, is no file: it is made of both. On MariaDB and MySQL a file says it itself.
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
    """Return name and text of the script of an engine, with these lines in their place."""
    return {COMMENTS: filled(read(sources / f"{COMMENTS}.in"), {"comments": lambda: lines})}


def described(sources: Path) -> list[tuple[str, str, str, str]]:
    """Return kind, name, column and meaning of all that the catalog of an engine describes."""
    return [
        *(("routine", name, "", text) for name, text in routines(sources).items()),
        *(("table", name, "", text) for name, text in tables(sources).items()),
        *(("column", *place, text) for place, text in columns(sources).items()),
    ]


def routines(sources: Path) -> dict[str, str]:
    """Return the purpose of every routine of an engine by its name in the contract."""
    every = load_contract(sources.parent).of(sources.name)
    return {name: one.purpose for name, one in every.items()}


def tables(sources: Path) -> dict[str, str]:
    """Return what the rows are of every table of an engine, by its name without the prefix.

    Raises:
        KeyError: the contract says nothing of a table.
    """
    known = raw_contract(sources.parent)["tables"]
    return {table: known[table] for table, _ in _tables(sources)}


def columns(sources: Path) -> dict[tuple[str, str], str]:
    """Return what every column of every table of an engine means; raises KeyError as `tables`."""
    return {
        (table, column): meaning(sources, table, column)
        for table, names in _tables(sources)
        for column in names
    }


def meaning(sources: Path, table: str, column: str) -> str:
    """Return what a column means; raises KeyError if the contract says nothing of it."""
    contract = raw_contract(sources.parent)
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


def _tables(sources: Path) -> Iterator[tuple[str, list[str]]]:
    for table, inner in sorted(TABLE.findall(read(sources / TABLES))):
        yield table, [name for name in _COLUMN.findall(inner) if name not in NO_COLUMN]
