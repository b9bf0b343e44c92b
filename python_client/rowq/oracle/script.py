"""A migration as a script for SQL*Plus and SQLcl."""

import re
from collections.abc import Iterator
from pathlib import Path

from rowq.migrate.frozen import GRANTS, Part, joined
from rowq.migrate.release import Numbered, Release
from rowq.migrate.steps import recorded
from rowq.oracle.packages import packages
from rowq.oracle.statements import forgiven, version_text, with_units

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


def script(release: Release, numbered: Numbered) -> str:
    """Return the script that installs a migration where the ones before it are."""
    return joined(_HEAD.format(heading=numbered.heading), _parts(release, numbered))


def assembled(sources: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of what install.sql names and is no file, from the folder sql/oracle."""
    return ((f"packages/{name}", text) for name, text in packages(sources))


def _parts(release: Release, numbered: Numbered) -> Iterator[Part]:
    yield Part("before", "preflight.sql", release.text("preflight.sql"))
    yield Part("before", "bookkeeping.sql", client_form(release.text("bookkeeping.sql")))
    yield Part("before", "installed", "".join(_checks(release.ids(numbered.number))))
    for part in recorded(numbered.migration):
        yield Part(part.kind, part.name, client_form(part.text))
    remember = _REMEMBER.format(hash=numbered.migration.hash, id=numbered.id)
    yield Part("after", "noted", f"{remember}{version_text(numbered).lstrip()}")
    yield Part("file", GRANTS, release.files(numbered.number)[GRANTS])
    yield Part("after", "committed", "commit\n/\n")


def _checks(ids: list[str]) -> Iterator[str]:
    if before := ids[:-1]:
        needed = f"= '{before[-1]}'"
        yield _CHECK.format(
            compare="= 0", number=807, fault="RQ807 unknown_migration", those=needed
        )
    known = ", ".join(f"'{known}'" for known in ids)
    newer = f"not in ({known})"
    yield _CHECK.format(compare="> 0", number=804, fault="RQ804 schema_newer", those=newer)


def client_form(text: str) -> str:
    """Return a file or statement as it stands in the script: its units may have been run before."""
    return with_units(text, _forgiving)


def source_form(text: str) -> str:
    """Return a file as it was before it came into the script."""
    return _FORGIVEN.sub(lambda found: found[1], text)


def _forgiving(unit: str) -> str:
    numbers = ", ".join(str(-number) for number in forgiven(unit))
    return _FORGIVING.format(unit=unit, numbers=numbers) if numbers else unit
