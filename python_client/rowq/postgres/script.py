"""A migration as a script for psql."""

from collections.abc import Iterator

from rowq.migrate.client_script import BaseScript
from rowq.migrate.frozen import Part
from rowq.migrate.release import Release
from rowq.postgres.statements import BEFORE, BOOKKEEPING

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


class Script(BaseScript):
    """How psql is told what migrate does."""

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _REQUIRE
    REFUSE_NEWER = _REFUSE_NEWER
    REMEMBER = _REMEMBER
    END = Part("after", "committed", "commit;\n")

    def before(self, release: Release) -> Iterator[Part]:
        """Return what comes before the migration's own parts."""
        for name in (*BEFORE, "bookkeeping.sql"):
            yield Part("before", name, release.text(name))

    def client_form(self, text: str) -> str:
        """Return a file or statement as it stands in the script: another may follow it."""
        last = text.rstrip().rpartition("\n")[2]
        is_ended = last.endswith(";") or last.startswith("--")
        return text if is_ended and text.endswith("\n") else f"{text.rstrip().rstrip(';')};\n"


SCRIPT = Script()
