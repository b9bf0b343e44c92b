"""A migration as a script for psql, and as one string for a driver."""

from collections.abc import Iterator
from pathlib import Path

from rowq.tools.migrate import comments
from rowq.tools.migrate.client_script import BaseScript, Bookkeeping
from rowq.tools.migrate.frozen import Section
from rowq.tools.migrate.release import Release

TRUST = "trust.sql"
# These run first in the transaction of a migration, in this order.
BEFORE = ("preflight.sql", TRUST, "lock.sql")

BOOKKEEPING = Bookkeeping(
    migration="rowq.migration",
    log="rowq.migration_log",
    mark="%s",
    user="session_user",
    now="clock_timestamp() at time zone 'utc'",
    new_id="gen_random_uuid()",
    version="""
    insert into rowq.meta (name, value)
    values ('schema_version', '{number}'), ('rowq_version', '{version}')
    on conflict (name) do update
    set value = excluded.value,
        changed_at = clock_timestamp()
    where rowq.meta.value <> excluded.value;
""",
)


_HEAD = """\\set ON_ERROR_STOP on
\\encoding UTF8
-- {heading}.
-- Run it with psql, as a file or through a pipe. It is one transaction.
begin;
"""
_REQUIRE = """
do $$
begin
    if not exists (select 1 from rowq.migration m where m.migration_id = '{needed}') then
        raise exception 'RQ807 unknown_migration: this script requires migration {needed}'
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
        raise exception 'RQ804 schema_newer: the database has a newer rowq'
            using errcode = 'RQ804';
    end if;
end;
$$;
"""
_REFUSE_OLDER = """
do $$
begin
    if exists (select 1 from rowq.migration)
        and not exists (select 1 from rowq.migration m where m.migration_id = '{newest}')
    then
        raise exception 'RQ807 unknown_migration: the database has an older rowq'
            using errcode = 'RQ807', hint = 'Run the later ones of migrations/postgres/scripts.';
    end if;
end;
$$;
"""
_REMEMBER = """
with installed as (
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (
        '{hash}',
        '{id}',
        clock_timestamp() at time zone 'utc'
    )
    on conflict (migration_hash) do nothing
    returning migration_hash, migration_id, applied_at_utc
)
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    gen_random_uuid(), migration_hash, migration_id, 'apply', session_user, 'script', applied_at_utc
from installed;
"""


_PLAIN_HEAD = """-- {heading}.
-- For drivers and other tools: one string of many statements. Run it as a whole, in a transaction:
-- psycopg connection.execute(text), node-pg client.query(text), JDBC with setAutoCommit(false). It
-- does not commit, and restores the settings that it changes. For psql, omit --plain.
"""
_SETTINGS = (
    "client_min_messages",
    "default_table_access_method",
    "lock_timeout",
    "quote_all_identifiers",
    "role",
    "standard_conforming_strings",
    "statement_timeout",
)
_QUOTED = ",\n        ".join(f"'{name}'" for name in _SETTINGS)
_OPEN = """-- From the first statement on, names must resolve to the catalog.
do $$
begin
    perform pg_catalog.set_config(
        'rowq.search_path', pg_catalog.current_setting('search_path'), true);
    perform pg_catalog.set_config('search_path', '', true);
    perform pg_catalog.set_config('rowq.transaction', 'one', true);
end;
$$;
-- Outside a transaction, the settings of the preceding statement are gone.
do $$
begin
    if coalesce(pg_catalog.current_setting('rowq.transaction', true), '') <> 'one' then
        raise exception 'run this script as a whole, in one transaction'
            using errcode = 'no_active_sql_transaction';
    end if;

    perform pg_catalog.set_config(
        'rowq.settings',
        pg_catalog.jsonb_object_agg(s.name, pg_catalog.current_setting(s.name))::text,
        true)
    from pg_catalog.unnest(array[
        {settings}
    ]) s (name);
end;
$$;
"""
_CLOSE = """do $$
begin
    perform pg_catalog.set_config(s.key, s.value, true)
    from pg_catalog.jsonb_each_text(pg_catalog.current_setting('rowq.settings')::jsonb) s;
    perform pg_catalog.set_config(
        'search_path', pg_catalog.current_setting('rowq.search_path'), true);
end;
$$;
"""
_REFUSE_MESSAGES = """
lock table rowq.message in access exclusive mode;

do $$
begin
    if exists (select from only rowq.ready)
        or exists (select from only rowq.delayed)
        or exists (select from only rowq.dead)
        or exists (select from only rowq.group_waiting)
        or exists (select from only rowq.blocked)
        or exists (select from only rowq.claim c where cardinality(c.message_ids) > 0)
        or exists (select from rowq.archive)
        or exists (
            select
            from only rowq.finished f
            where cardinality(f.message_ids) > 0
        )
    then
        raise exception 'RQ805 messages_left: this rollback would delete messages'
            using errcode = 'RQ805', hint = 'Finish, cancel or purge the messages and purge the '
                'archive first, or use: rowq rollback --force';
    end if;
end;
$$;
"""


class Script(BaseScript):
    """A script for psql, and a string for a driver."""

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _REQUIRE
    REFUSE_NEWER = _REFUSE_NEWER
    REFUSE_OLDER = _REFUSE_OLDER
    REMEMBER = _REMEMBER
    END = Section("after", "committed", "commit;\n")
    PLAIN_HEAD = _PLAIN_HEAD
    SEPARATOR = ""
    OPEN = (Section("before", "settings", _OPEN.format(settings=_QUOTED)),)
    CLOSE = (Section("after", "settings", _CLOSE),)
    FOR_CLIENT = ("committed",)
    REFUSE_MESSAGES = _REFUSE_MESSAGES

    def before(self, release: Release) -> Iterator[Section]:
        """Return the sections before the migration's own."""
        for name in (*BEFORE, "bookkeeping.sql"):
            yield Section("before", name, release.text(name))

    def before_undo(self, release: Release) -> Iterator[Section]:
        """Return the sections before a rollback's own."""
        for name in BEFORE:
            yield Section("before", name, release.text(name))

    def plain_statements(self, text: str) -> tuple[str]:
        """Return a section as a whole: the server accepts many statements at once."""
        return (text,)

    def flyway_form(self, text: str) -> str:
        """Return a section unchanged: Flyway knows dollar quotes."""
        return text

    def client_form(self, text: str) -> str:
        """Return a file or statement in the script's form, so that another can follow."""
        last = text.rstrip().rpartition("\n")[2]
        is_ended = last.endswith(";") or last.startswith("--")
        return text if is_ended and text.endswith("\n") else f"{text.rstrip().rstrip(';')};\n"

    def assembled(self, sources: Path) -> dict[str, str]:
        """Return path and text of the comments."""
        return comments.script(sources, comments.rows(comments.described(sources)))


SCRIPT = Script()
