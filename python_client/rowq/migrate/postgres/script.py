"""The migrations as one script for psql."""

from collections.abc import Iterator

from rowq.migrate.frozen import GRANTS
from rowq.migrate.postgres.sql import BEFORE, version_text
from rowq.migrate.release import Release
from rowq.migrate.shared import recorded

_HEAD = """\\set ON_ERROR_STOP on
\\encoding UTF8
-- rowq {version}: {what}.
-- Run it with psql, in a file or through a pipe. It is one transaction: all of it or nothing.
begin;
"""

_REQUIRE = """
do $$
begin
    if not exists (select 1 from rowq.migration m where m.migration_id = '{needed}') then
        raise exception 'RQ807 unknown_migration: this script begins after {needed},'
            ' which is not installed'
            using errcode = 'RQ807';
    end if;
end;
$$;
"""

_REFUSE_NEWER = """
do $$
begin
    if exists (
        select 1
        from rowq.migration m
        where m.migration_id not in ({known})
    ) then
        raise exception 'RQ804 schema_newer: this database was upgraded by a newer rowq'
            using errcode = 'RQ804';
    end if;
end;
$$;
"""

_REMEMBER = """
with installed as (
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values ('{hash}', '{id}', clock_timestamp() at time zone 'utc')
    on conflict (migration_hash) do nothing
    returning migration_hash, migration_id, applied_at_utc
)
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    gen_random_uuid(), migration_hash, migration_id, 'apply', session_user, 'script', applied_at_utc
from installed;
"""


def script(release: Release, from_number: int) -> str:
    """Return the script that installs what comes after `from_number`."""
    return "\n".join(part.strip("\n") for part in _parts(release, from_number)) + "\n"


def _parts(release: Release, from_number: int) -> Iterator[str]:
    newest = release.get(release.newest)
    what = f"upgrade from {from_number} to" if from_number else "install"
    yield _HEAD.format(version=newest.rowq_version, what=f"{what} {newest.number}")
    yield from (release.text(name) for name in BEFORE)
    yield release.text("bookkeeping.sql")
    if from_number:
        yield _REQUIRE.format(needed=release.get(from_number).id)
    known = ", ".join(f"'{numbered.id}'" for numbered in release.migrations)
    yield _REFUSE_NEWER.format(known=known)
    for numbered in release.migrations[from_number:]:
        yield f"\n-- {numbered.id}"
        yield from (_ended(text) for text in recorded(numbered))
        yield _REMEMBER.format(hash=numbered.migration.hash, id=numbered.id)
    yield version_text(newest)
    yield release.copies(newest.number)[GRANTS]
    yield "\ncommit;"


def _ended(text: str) -> str:
    """Return a text that another may follow."""
    return text if text.rstrip().endswith(";") else f"{text.rstrip()};"
