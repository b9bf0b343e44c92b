"""A migration as a script for psql."""

from collections.abc import Iterator

from rowq.migrate.frozen import GRANTS, Part, joined
from rowq.migrate.release import Numbered, Release
from rowq.migrate.steps import recorded
from rowq.postgres.statements import BEFORE, version_text

_HEAD = """\\set ON_ERROR_STOP on
\\encoding UTF8
-- {heading}.
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


def script(release: Release, numbered: Numbered) -> str:
    """Return the script that installs a migration where the ones before it are."""
    return joined(_HEAD.format(heading=numbered.heading), _parts(release, numbered))


def _parts(release: Release, numbered: Numbered) -> Iterator[Part]:
    for name in (*BEFORE, "bookkeeping.sql"):
        yield Part("before", name, release.text(name))
    *before, own = release.ids(numbered.number)
    known = ", ".join(f"'{known}'" for known in (*before, own))
    require = _REQUIRE.format(needed=before[-1]) if before else ""
    yield Part("before", "installed", f"{require}{_REFUSE_NEWER.format(known=known)}".lstrip())
    for part in recorded(numbered.migration):
        yield Part(part.kind, part.name, client_form(part.text))
    remember = _REMEMBER.format(hash=numbered.migration.hash, id=own)
    yield Part("after", "noted", f"{remember}{version_text(numbered)}".lstrip())
    yield Part("file", GRANTS, release.files(numbered.number)[GRANTS])
    yield Part("after", "committed", "commit;\n")


def client_form(text: str) -> str:
    """Return a file or statement as it stands in the script: another may follow it."""
    last = text.rstrip().rpartition("\n")[2]
    is_ended = last.endswith(";") or last.startswith("--")
    return text if is_ended and text.endswith("\n") else f"{text.rstrip().rstrip(';')};\n"


def source_form(text: str) -> str:
    """Return a file as it was before it came into the script."""
    return text
