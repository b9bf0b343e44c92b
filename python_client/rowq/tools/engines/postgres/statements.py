"""The words in which migrations on PostgreSQL note what is installed, and what runs first."""

from rowq.tools.migrate.bookkeeping import Bookkeeping

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
