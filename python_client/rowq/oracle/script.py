"""A migration as a script for SQL*Plus and SQLcl."""

import re
from collections.abc import Iterator
from pathlib import Path

from rowq.migrate.client_script import BaseScript
from rowq.migrate.frozen import Part
from rowq.migrate.release import Release
from rowq.oracle.packages import packages
from rowq.oracle.statements import BOOKKEEPING, forgiven, with_units

_HEAD = """-- {heading}.
-- Run it in SQL*Plus or SQLcl, as the account that owns rowq, or shall: @script.sql. After an error
-- run all of it again: every unit may be.
set define off
set sqlblanklines on
set serveroutput on
whenever sqlerror exit failure rollback
"""
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


class Script(BaseScript):
    """How SQL*Plus and SQLcl are told what migrate does."""

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _CHECK.format(
        compare="= 0", number=807, fault="RQ807 unknown_migration", those="= '{needed}'"
    )
    REFUSE_NEWER = _CHECK.format(
        compare="> 0", number=804, fault="RQ804 schema_newer", those="not in ({known})"
    )
    REMEMBER = _REMEMBER
    END = Part("after", "committed", "commit\n/\n")

    def before(self, release: Release) -> Iterator[Part]:
        """Return what comes before the migration's own parts."""
        yield Part("before", "preflight.sql", release.text("preflight.sql"))
        yield Part("before", "bookkeeping.sql", self.client_form(release.text("bookkeeping.sql")))

    def client_form(self, text: str) -> str:
        """Return a file or statement as it stands in the script: units may have been run before."""
        return with_units(text, _forgiving)

    def source_form(self, text: str) -> str:
        """Return a file as it was before it came into the script."""
        return _FORGIVEN.sub(lambda found: found[1], text)

    def assembled(self, sources: Path) -> dict[str, str]:
        """Return path and text of the packages, which install.sql names and are no files."""
        return {f"packages/{name}": text for name, text in packages(sources)}


def _forgiving(unit: str) -> str:
    numbers = ", ".join(str(-number) for number in forgiven(unit))
    return _FORGIVING.format(unit=unit, numbers=numbers) if numbers else unit


SCRIPT = Script()
