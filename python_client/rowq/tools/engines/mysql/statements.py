"""Statements that migrations on MariaDB and MySQL send, and how a script is cut into statements."""

import re
from collections.abc import Iterable, Iterator

from rowq.tools.migrate.bookkeeping import Bookkeeping

OWNER = "rowq_owner@localhost"
"""The account that the routines run as where the one that installs them may make it."""

BOOKKEEPING_TABLES = ("migration", "migration_log", "migration_lock")

_DROP = re.compile(r"drop procedure if exists (rowq\.\w+)")
_CREATE = re.compile(r"^create procedure (?=rowq\.)", re.MULTILINE)
_CREATE_OWNED = re.compile(
    r"^create definer = 'rowq_owner'@'localhost' procedure (?=rowq\.)", re.MULTILINE
)
_CREATED = re.compile(r"create (?:definer = \S+ )?procedure (rowq\.\w+)\(")

BOOKKEEPING = Bookkeeping(
    migration="rowq.migration",
    log="rowq.migration_log",
    mark="%s",
    user="user()",
    now="utc_timestamp(6)",
    new_id="uuid()",
    version="""
insert into rowq.meta (name, value, changed_at)
values
    ('schema_version', '{number}', utc_timestamp(6)),
    ('rowq_version', '{version}', utc_timestamp(6))
on duplicate key update value = values(value), changed_at = values(changed_at);
""",
)


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a script of ours, as the engine's own client would send them.

    A statement ends with the delimiter at the end of a line, which is a semicolon until a line says
    `delimiter`. A line of comment ends nothing.
    """
    delimiter = ";"
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("delimiter "):
            delimiter = line.split()[1]
            continue
        if not lines and (not line.strip() or line.startswith("--")):
            continue
        lines.append(line)
        if line.endswith(delimiter) and not line.lstrip().startswith("--"):
            yield "\n".join(lines).removesuffix(delimiter)
            lines = []
    if lines:
        raise ValueError(f"a statement has no end: {lines[0]}")


def owned(text: str) -> str:
    """Return a script with the procedures that it makes running as rowq's own account."""
    return _CREATE.sub("create definer = 'rowq_owner'@'localhost' procedure ", text)


def not_owned(text: str) -> str:
    """Return a script as it was before `owned`."""
    return _CREATE_OWNED.sub("create procedure ", text)


def replacing(parts: Iterable[str]) -> Iterator[str]:
    """Yield statements, with a drop and the creation after it as one, which only MariaDB has.

    So a procedure that is in use is never missing, and keeps its rights.
    """
    dropped: re.Match[str] | None = None
    for statement in parts:
        if dropped and (created := _CREATED.match(statement)) and created[1] == dropped[1]:
            yield statement.replace("create", "create or replace", 1)
            dropped = None
            continue
        if dropped:
            yield dropped[0]
        dropped = _DROP.fullmatch(statement)
        if not dropped:
            yield statement
    if dropped:
        yield dropped[0]
