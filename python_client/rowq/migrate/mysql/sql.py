"""Statements that migrations on MariaDB and MySQL send, and how a script is cut into statements."""

from collections.abc import Iterator

from rowq.migrate.release import Numbered

HAS_MESSAGES = """
    select exists (select 1 from rowq.ready where message_id > 0)
        or exists (select 1 from rowq.delayed where message_id > 0)
        or exists (select 1 from rowq.claim where claim_id > 0)
        or exists (select 1 from rowq.dead)
"""

_REMEMBER_VERSION = """
insert into rowq.meta (name, value, changed_at)
values
    ('schema_version', '{number}', utc_timestamp(6)),
    ('rowq_version', '{version}', utc_timestamp(6))
on duplicate key update value = values(value), changed_at = values(changed_at);
"""


def version_text(numbered: Numbered) -> str:
    """Return the statement that notes in rowq.meta what is installed."""
    return _REMEMBER_VERSION.format(number=numbered.number, version=numbered.rowq_version)


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
