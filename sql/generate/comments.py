"""The files of sql/mysql say by `comment '...'` what the contract says of what they make."""

import re
from pathlib import Path

from rowq.contract import sql_directory
from rowq.tools.migrate.comments import NO_COLUMN, TABLE, literal, meaning, routines, tables
from rowq.tools.migrate.sources import TABLES

_EACH_TABLE = re.compile(r"^(?=create table )", re.MULTILINE)
_LINE_OF_A_COLUMN = re.compile(r"^(    (\w+) +[a-z].*?)(?: comment '.*')?(?=,?$)", re.MULTILINE)
_OF_A_PROCEDURE = re.compile(r"(\n(?:modifies|reads) sql data\n)(?:comment '.*'\n)?(?=begin\n)")
_OF_A_TABLE = re.compile(r"(\n\) engine = [^;\n]*?)(?:\ncomment = '.*')?(?=;?\n)")


def commented_routine(sources: Path, name: str, text: str) -> str:
    """Return the text of a routine of sql/mysql with the comment that it should have.

    Raises:
        ValueError: there is no one place for it.
    """
    comment = f"comment {literal(routines(sources)[name])}"
    text, count = _OF_A_PROCEDURE.subn(lambda found: f"{found[1]}{comment}\n", text)
    if count != 1:
        raise ValueError(f"{name} has {count} places for a comment")
    return text


def commented_tables() -> str:
    """Return the text of the tables of MySQL with the comments that it should have.

    Raises:
        ValueError: there is no one place for that of a table.
    """
    sources = sql_directory() / "mysql"
    before, *made = _EACH_TABLE.split((sources / TABLES).read_text(encoding="utf-8"))
    return before + "".join(_commented_table(sources, statement) for statement in made)


def _commented_table(sources: Path, text: str) -> str:
    """Return the statement of a table, and what follows it, with its comments."""
    statement = TABLE.match(text)
    if statement is None:
        raise ValueError(f"no table in the house style: {text.partition(' (')[0]}")
    table = statement[1]
    comment = f"comment = {literal(tables(sources)[table])}"
    text, count = _OF_A_TABLE.subn(lambda found: f"{found[1]}\n{comment}", text)
    if count != 1:
        raise ValueError(f"{table} has {count} places for a comment")
    return TABLE.sub(lambda found: _with_columns(sources, table, found[0]), text)


def _with_columns(sources: Path, table: str, statement: str) -> str:
    def described(line: re.Match[str]) -> str:
        if line[2] in NO_COLUMN:
            return line[0]
        return f"{line[1]} comment {literal(meaning(sources, table, line[2]))}"

    return _LINE_OF_A_COLUMN.sub(described, statement)
