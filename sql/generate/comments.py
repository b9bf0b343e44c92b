"""The contract's texts as `comment '...'` clauses in sql/mysql."""

import re
from pathlib import Path

from rowq.contract import raw_contract, sql_directory
from rowq.tools.migrate.comments import NO_COLUMN, TABLE, literal, meaning, routines
from rowq.tools.migrate.sources import TABLES, read

_EACH_TABLE = re.compile(r"^(?=create table )", re.MULTILINE)
_LINE_OF_A_COLUMN = re.compile(r"^(    (\w+) +[a-z].*?)(?: comment '.*')?(?=,?$)", re.MULTILINE)
_OF_A_PROCEDURE = re.compile(r"(\n(?:modifies|reads) sql data\n)(?:comment '.*'\n)?(?=begin\n)")
_OF_A_TABLE = re.compile(r"(\n\) engine = [^;\n]*?)(?:\ncomment = '.*')?(?=;?\n)")


def commented_routine(sources: Path, name: str, text: str) -> str:
    """Return a routine of sql/mysql with its comment; raise ValueError if it has no place."""
    return _put(f"comment {literal(routines(sources)[name])}\n", _OF_A_PROCEDURE, name, text)


def commented_tables() -> str:
    """Return the tables of MySQL with their comments; raise ValueError if one has no place."""
    sources = sql_directory() / "mysql"
    before, *made = _EACH_TABLE.split(read(sources / TABLES))
    return before + "".join(_commented_table(sources, statement) for statement in made)


def _commented_table(sources: Path, text: str) -> str:
    """Return the SQL of a table with its comments."""
    statement = TABLE.match(text)
    if statement is None:
        raise ValueError(f"expected a table in the house style, got {text.partition(' (')[0]}")
    table = statement[1]

    def described(line: re.Match[str]) -> str:
        if line[2] in NO_COLUMN:
            return line[0]
        return f"{line[1]} comment {literal(meaning(sources, table, line[2]))}"

    columns = _LINE_OF_A_COLUMN.sub(described, statement[0])
    comment = f"\ncomment = {literal(raw_contract()['tables'][table])}"
    return _put(comment, _OF_A_TABLE, table, columns + text[statement.end() :])


def _put(comment: str, pattern: re.Pattern[str], name: str, text: str) -> str:
    """Insert a comment at the only match; raise ValueError if there is not exactly one."""
    text, count = pattern.subn(lambda found: f"{found[1]}{comment}", text)
    if count != 1:
        raise ValueError(f"{name} must have one place for a comment, got {count}")
    return text
