"""What a server's own catalog says of routines, tables and columns: the contract's words.

On MariaDB and MySQL a file of sql/mysql says it itself, by `comment '...'`. The other engines have
sql/<engine>/comments.sql.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rowq.contract import load_contract
from rowq.resources import sql_directory
from rowq.sqlserver.calls import procedure_name

_COLUMN = re.compile(r"^    (\w+) +[a-z]", re.MULTILINE)
_NO_COLUMN = {"constraint", "key", "primary", "unique", "using"}
_TABLE = re.compile(
    r"^create table (?:if not exists )?rowq[._](\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL
)
_LINE_OF_A_COLUMN = re.compile(r"^(    (\w+) +[a-z].*?)(?: comment '.*')?(?=,?$)", re.MULTILINE)
_OF_A_PROCEDURE = re.compile(r"(\n(?:modifies|reads) sql data\n)(?:comment '.*'\n)?(?=begin\n)")
_OF_A_TABLE = re.compile(r"(\n\) engine = [^;\n]*?)(?:\ncomment = '.*')?(?=;?\n)")


@cache
def _contract() -> dict[str, Any]:
    with (sql_directory() / "contract.toml").open("rb") as file:
        return tomllib.load(file)


def routines(engine: str) -> dict[str, str]:
    """Return the purpose of every routine of an engine by its name in the contract."""
    return {name: entry.purpose for name, entry in load_contract().of(engine).items()}


def tables(engine: str) -> dict[str, str]:
    """Return what the rows are of every table of an engine, by its name without the prefix.

    Raises:
        KeyError: the contract says nothing of a table.
    """
    return {table: _contract()["tables"][table] for table, _ in _tables(engine)}


def columns(engine: str) -> dict[tuple[str, str], str]:
    """Return what every column of every table of an engine means.

    Raises:
        KeyError: the contract says nothing of a column.
    """
    return {
        (table, column): _meaning(table, column)
        for table, names in _tables(engine)
        for column in names
    }


def _meaning(table: str, column: str) -> str:
    own = _contract()["table_columns"]
    found = own.get(f"{table}.{column}") or own.get(column)
    return str(found or _contract()["columns"][column]["meaning"])


def _tables(engine: str) -> Iterator[tuple[str, list[str]]]:
    for path in sorted((sql_directory() / engine / "tables").glob("*.sql")):
        for table, inner in _TABLE.findall(path.read_text(encoding="utf-8")):
            yield table, [name for name in _COLUMN.findall(inner) if name not in _NO_COLUMN]


def on_postgres() -> str:
    """Return rows of kind, name, column and text."""
    rows = [("routine", name, "", text) for name, text in routines("postgres").items()]
    rows += [("table", name, "", text) for name, text in tables("postgres").items()]
    rows += [("column", *place, text) for place, text in columns("postgres").items()]
    return _rows(rows)


def on_sqlserver() -> str:
    """Return rows of kind, name, column and text."""
    named = routines("sqlserver").items()
    rows = [("procedure", procedure_name(name), "", text) for name, text in named]
    rows += [("table", name, "", text) for name, text in tables("sqlserver").items()]
    rows += [("table", *place, text) for place, text in columns("sqlserver").items()]
    return _rows(rows, "N")


def _rows(rows: Sequence[tuple[str, ...]], prefix: str = "") -> str:
    listed = (", ".join(prefix + literal(word) for word in row) for row in rows)
    return ",\n".join(f"({row})" for row in listed) + "\n"


def on_oracle() -> str:
    """Return a call for every table and every column."""
    calls = [(f"rowq_{table}", "", text) for table, text in tables("oracle").items()]
    calls += [(f"rowq_{table}", name, text) for (table, name), text in columns("oracle").items()]
    return "".join(
        f"describe('{table}', {literal(column) if column else 'null'}, {literal(text)});\n"
        for table, column, text in calls
    )


def literal(text: str) -> str:
    """Return a text as a literal of SQL; the contract's texts have no backslash."""
    return "'" + text.replace("'", "''") + "'"


def files_of_mysql() -> list[Path]:
    """Return the files that say by themselves what they make."""
    folder = sql_directory() / "mysql"
    made = [folder / "routines" / f"{name}.sql" for name in routines("mysql")]
    return [*made, *(folder / "tables" / f"{name}.sql" for name in tables("mysql"))]


def commented(path: Path) -> str:
    """Return the text of a file of sql/mysql with the comments that it should have.

    Raises:
        ValueError: there is no one place for that of the routine or the table.
    """
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "routines":
        comment = f"comment {literal(routines('mysql')[path.stem])}"
        text, count = _OF_A_PROCEDURE.subn(lambda found: f"{found[1]}{comment}\n", text)
    else:
        comment = f"comment = {literal(tables('mysql')[path.stem])}"
        text, count = _OF_A_TABLE.subn(lambda found: f"{found[1]}\n{comment}", text)
        text = _TABLE.sub(lambda found: _with_columns(path.stem, found[0]), text)
    if count != 1:
        raise ValueError(f"{path.name} has {count} places for a comment")
    return text


def _with_columns(table: str, statement: str) -> str:
    def described(line: re.Match[str]) -> str:
        if line[2] in _NO_COLUMN:
            return line[0]
        return f"{line[1]} comment {literal(_meaning(table, line[2]))}"

    return _LINE_OF_A_COLUMN.sub(described, statement)
