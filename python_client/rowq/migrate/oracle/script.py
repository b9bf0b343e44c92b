"""The migrations as one script for SQL*Plus and SQLcl."""

from collections.abc import Iterator

from rowq.migrate.frozen import GRANTS, newest_copies, order, read
from rowq.migrate.oracle.sql import forgiven, units, version_text
from rowq.migrate.release import Release

_HEAD = """-- rowq {version}: {what}.
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
/"""
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
/"""


def script(release: Release, from_number: int) -> str:
    """Return the script that installs what comes after `from_number`."""
    return "\n".join(part.strip("\n") for part in _parts(release, from_number)) + "\n"


def _parts(release: Release, from_number: int) -> Iterator[str]:
    newest = release.get(release.newest)
    what = f"upgrade from {from_number} to" if from_number else "install"
    yield _HEAD.format(version=newest.rowq_version, what=f"{what} {newest.number}")
    yield release.text("preflight.sql")
    yield _again(release.text("bookkeeping.sql"))
    if from_number:
        needed = f"= '{release.get(from_number).id}'"
        yield _CHECK.format(
            compare="= 0", number=807, fault="RQ807 unknown_migration", those=needed
        )
    known = ", ".join(f"'{numbered.id}'" for numbered in release.migrations)
    yield _CHECK.format(
        compare="> 0", number=804, fault="RQ804 schema_newer", those=f"not in ({known})"
    )
    for numbered in release.migrations[from_number:]:
        yield f"\n-- {numbered.id}"
        for relative in order(release.folder / f"{numbered.number:04d}"):
            if relative != GRANTS:
                yield _again(read(release.folder / f"{numbered.number:04d}" / relative))
        yield _REMEMBER.format(hash=numbered.migration.hash, id=numbered.id)
    yield version_text(newest)
    yield read(newest_copies(release.folder, newest.number)[GRANTS])
    yield "commit\n/"


def _again(text: str) -> str:
    """Return a script whose units may have been run before."""
    return "\n".join(f"{_forgiving(unit)}\n/" for unit in units(text))


def _forgiving(unit: str) -> str:
    numbers = ", ".join(str(-number) for number in forgiven(unit))
    return _FORGIVING.format(unit=unit, numbers=numbers) if numbers else unit
