"""The files of sql/mysql say by `comment '...'` what the contract says of what they make."""

import re
from pathlib import Path

from rowq.migrate.comments import NO_COLUMN, TABLE, literal, meaning, routines, tables
from rowq.migrate.sources import TABLES
from rowq.resources import sql_directory

_EACH_TABLE = re.compile(r"^(?=create table )", re.MULTILINE)
_LINE_OF_A_COLUMN = re.compile(r"^(    (\w+) +[a-z].*?)(?: comment '.*')?(?=,?$)", re.MULTILINE)
_OF_A_PROCEDURE = re.compile(r"(\n(?:modifies|reads) sql data\n)(?:comment '.*'\n)?(?=begin\n)")
_OF_A_TABLE = re.compile(r"(\n\) engine = [^;\n]*?)(?:\ncomment = '.*')?(?=;?\n)")


def files_of_mysql() -> list[Path]:
    """Return the files that say by themselves what they make."""
    folder = sql_directory() / "mysql"
    made = [folder / "routines" / f"{name}.sql" for name in routines(folder)]
    return [*made, folder / TABLES]


def commented(path: Path) -> str:
    """Return the text of a file of sql/mysql with the comments that it should have.

    Raises:
        ValueError: there is no one place for that of a routine or a table.
    """
    text = path.read_text(encoding="utf-8")
    if path.name == TABLES:
        before, *made = _EACH_TABLE.split(text)
        return before + "".join(_commented_table(path.parent, statement) for statement in made)
    comment = f"comment {literal(routines(path.parents[1])[path.stem])}"
    text, count = _OF_A_PROCEDURE.subn(lambda found: f"{found[1]}{comment}\n", text)
    if count != 1:
        raise ValueError(f"{path.name} has {count} places for a comment")
    return text


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
