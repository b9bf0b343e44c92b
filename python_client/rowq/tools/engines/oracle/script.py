"""A migration as a script for SQL*Plus and SQLcl, and for a driver."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from rowq.tools.engines.oracle.packages import packages
from rowq.tools.migrate import comments
from rowq.tools.migrate.client_script import BaseScript, Bookkeeping
from rowq.tools.migrate.frozen import Section
from rowq.tools.migrate.release import Release

ALREADY_THERE = (955, 1408)
"""Errors: a name, or a list of columns, is already used."""

ALREADY_GONE = (942, 2289, 4043, 1418)
"""Errors: a table, sequence, type, package or index does not exist."""

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

_HEAD = """-- {heading}.
-- Run it in SQL*Plus or SQLcl, as the account that shall own rowq: @script.sql. After an error run
-- all of it again: every unit can be repeated.
set define off
set sqlblanklines on
set serveroutput on
whenever sqlerror exit failure rollback
"""
_PLAIN_HEAD = """-- {heading}.
-- For drivers and other tools: a line "-- [end of statement]" separates two statements. Run them
-- one by one, in this order, on one connection, as the account that shall own rowq. PL/SQL keeps
-- its last semicolon, SQL has none. DDL commits: after an error run all of them again. For
-- SQL*Plus, omit --plain.
"""
_REFUSE_MESSAGES = """declare
    v_tables pls_integer;
    v_count  pls_integer;
begin
    select count(*) into v_tables
    from user_tables t
    where t.table_name in (
        'ROWQ_READY', 'ROWQ_DELAYED', 'ROWQ_LEASED', 'ROWQ_DEAD', 'ROWQ_GROUP_WAITING',
        'ROWQ_BLOCKED', 'ROWQ_ARCHIVE', 'ROWQ_FINISHED'
    );
    -- If an earlier run has dropped some of the tables, there is nothing left to lose.
    if v_tables < 8 then
        return;
    end if;

    execute immediate q'[
        select count(*)
        from (
            select null from rowq_ready where rownum = 1
            union all
            select null from rowq_delayed where rownum = 1
            union all
            select null from rowq_leased where rownum = 1
            union all
            select null from rowq_dead where rownum = 1
            union all
            select null from rowq_group_waiting where rownum = 1
            union all
            select null from rowq_blocked where rownum = 1
            union all
            select null from rowq_archive where rownum = 1
            union all
            select null from rowq_finished where rownum = 1
        )
    ]' into v_count;
    if v_count > 0 then
        raise_application_error(
            -20805, 'RQ805 messages_left: this rollback would delete messages'
        );
    end if;
end;
/
"""
# Flyway ends these with a line of /, and any other statement with a semicolon.
_PLSQL = re.compile(r"declare\b|begin\b|create (?:or replace )?(?:package|type)\b")
_FORGIVING = """begin
    execute immediate q'[
{unit}
    ]';
exception
    when others then
        -- Done by an earlier run.
        if sqlcode not in ({numbers}) then
            raise;
        end if;
end;"""
_CHECK = """declare
    v_count pls_integer;
begin
    select count(*) into v_count
    from rowq_migration m
    where m.migration_id {those};
    if v_count {compare} then
        raise_application_error(-20{number}, '{fault}');
    end if;
end;
/
"""
_REMEMBER = """merge into rowq_migration m
using (select '{hash}' as migration_hash from dual) n on (m.migration_hash = n.migration_hash)
when not matched then insert (migration_hash, migration_id, applied_at_utc)
    values (n.migration_hash, '{id}', sys_extract_utc(systimestamp))
/
insert into rowq_migration_log (
    id, migration_hash, migration_id, operation, username, hostname, created_at_utc
)
select lower(rawtohex(sys_guid())), '{hash}', '{id}', 'apply', user, 'script',
       sys_extract_utc(systimestamp)
from dual
where not exists (select null from rowq_migration_log g where g.migration_hash = '{hash}')
/
commit
/
"""
_FORGIVEN = re.compile(
    re.escape(_FORGIVING).replace(r"\{unit\}", "(.*?)").replace(r"\{numbers\}", "[-0-9, ]+"),
    re.DOTALL,
)


def with_units(text: str, change: Callable[[str], str]) -> str:
    """Return a script with its units changed, and everything between them unchanged."""
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
    """Yield the units of a script without the final `/`, and without comments before a unit."""
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
    """Return the numbers of errors that mean that a unit was run before."""
    if unit.startswith("drop "):
        return ALREADY_GONE
    return ALREADY_THERE if _CREATES.match(unit) else ()


class Script(BaseScript):
    """A script for SQL*Plus and SQLcl."""

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _CHECK.format(
        compare="= 0", number=807, fault="RQ807 unknown_migration", those="= '{needed}'"
    )
    REFUSE_NEWER = _CHECK.format(
        compare="> 0", number=804, fault="RQ804 schema_newer", those="not in ({known})"
    )
    REMEMBER = _REMEMBER
    END = Section("after", "committed", "commit\n/\n")
    PLAIN_HEAD = _PLAIN_HEAD
    REFUSE_MESSAGES = _REFUSE_MESSAGES
    END_OF_STATEMENT = "\n/\n"

    def before(self, release: Release) -> Iterator[Section]:
        """Return the sections before the migration's own."""
        yield Section("before", "preflight.sql", release.text("preflight.sql"))
        yield Section(
            "before", "bookkeeping.sql", self.client_form(release.text("bookkeeping.sql"))
        )

    def before_undo(self, release: Release) -> Iterator[Section]:
        """Return the sections before a rollback's own."""
        yield Section("before", "preflight.sql", release.text("preflight.sql"))

    def plain_statements(self, text: str) -> Iterator[str]:
        """Return a section's units."""
        return (f"{unit}\n" for unit in units(text))

    def flyway_form(self, text: str) -> str:
        """Return a section with its units terminated for Flyway."""
        return "".join(
            f"{unit}\n/\n" if _PLSQL.match(unit) else f"{unit};\n" for unit in units(text)
        )

    def client_form(self, text: str) -> str:
        """Return a file or statement in the script's form, in which units can be repeated."""
        return with_units(text, _forgiving)

    def source_form(self, text: str) -> str:
        """Return a file's original text from its form in a script."""
        return _FORGIVEN.sub(lambda found: found[1], text)

    def assembled(self, sources: Path) -> dict[str, str]:
        """Return path and text of the packages and of the comments."""
        calls = (
            f"describe('rowq_{table}', {comments.literal(column) if column else 'null'},"
            f" {comments.literal(text)});\n"
            for kind, table, column, text in comments.described(sources)
            if kind != "routine"
        )
        return {
            **{f"packages/{name}": text for name, text in packages(sources)},
            **comments.script(sources, "".join(calls)),
        }


def _forgiving(unit: str) -> str:
    numbers = ", ".join(str(-number) for number in forgiven(unit))
    return _FORGIVING.format(unit=unit, numbers=numbers) if numbers else unit


SCRIPT = Script()
