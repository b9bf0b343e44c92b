"""Statements that migrations on Oracle send, and how a script is cut into units."""

import re
from collections.abc import Callable, Iterator

from rowq.tools.migrate.bookkeeping import Bookkeeping

ALREADY_THERE = (955, 1408)
"""A name, or a list of columns, that an object has already."""

ALREADY_GONE = (942, 2289, 4043, 1418)
"""A table, a sequence, a type or package, an index that does not exist."""

BOOKKEEPING = Bookkeeping(
    migration="rowq_migration",
    log="rowq_migration_log",
    mark=":{}",
    user="user",
    now="sys_extract_utc(systimestamp)",
    new_id="lower(rawtohex(sys_guid()))",
    version="""
merge into rowq_meta m
using (
    select 'schema_version' as name, '{number}' as value from dual
    union all
    select 'rowq_version' as name, '{version}' as value from dual
) n on (m.name = n.name)
when matched then update
    set m.value      = n.value,
        m.changed_at = sys_extract_utc(systimestamp)
when not matched then insert (name, value, changed_at)
    values (n.name, n.value, sys_extract_utc(systimestamp))
/
""",
)
_CREATES = re.compile(r"create (?:unique )?(?:table|sequence|index)\b")


def with_units(text: str, change: Callable[[str], str]) -> str:
    """Return a script of ours with its units changed, and all between them as it is."""
    lines: list[str] = []
    unit: list[str] = []
    for line in text.splitlines():
        if line == "/":
            lines += [change("\n".join(unit)), line]
            unit = []
        elif unit or (line.strip() and not line.startswith("--")):
            unit.append(line)
        else:
            lines.append(line)
    return "\n".join([*lines, *unit, ""])


def units(text: str) -> Iterator[str]:
    """Yield the units of a script of ours without the line of `/` that ends each.

    Lines of comment before a unit are not part of it.
    """
    lines: list[str] = []
    for line in text.splitlines():
        if line == "/":
            yield "\n".join(lines)
            lines = []
        elif lines or (line.strip() and not line.startswith("--")):
            lines.append(line)
    if lines:
        raise ValueError(f"a unit has no end: {lines[0]}")


def forgiven(unit: str) -> tuple[int, ...]:
    """Return the numbers of errors that say that a unit has been run before."""
    if unit.startswith("drop "):
        return ALREADY_GONE
    return ALREADY_THERE if _CREATES.match(unit) else ()
