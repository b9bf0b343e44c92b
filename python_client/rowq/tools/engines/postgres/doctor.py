"""Checks on PostgreSQL.

Functions are qualified, because the database's owner controls the search_path.
"""

from rowq.tools.doctor.check import EngineChecks, Setting, Status, is_one_of

# An ordinary role could replace its routine by one that runs with the caller's privileges.
_BEFORE = """
    do $$
    declare
        v_owner pg_catalog.text;
    begin
        perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        select r.rolname
        into v_owner
        from pg_namespace n
        join pg_roles o on o.oid = n.nspowner
        join pg_roles r
            on r.rolcanlogin
            and not r.rolsuper
            and pg_has_role(r.oid, n.nspowner, 'member')
        where n.nspname = 'rowq'
          and not o.rolsuper
          and (select s.rolsuper from pg_roles s where s.rolname = session_user)
        order by r.rolname
        limit 1;
        if found then
            raise exception 'RQ803 missing_privilege: code of % in the schema rowq could run with'
                ' your superuser privileges; connect as %', v_owner, v_owner
                using errcode = 'RQ803';
        end if;
    end;
    $$
"""

CHECKS = EngineChecks(
    now="select extract(epoch from pg_catalog.clock_timestamp())::double precision",
    version="select pg_catalog.current_setting('server_version')",
    is_supported=lambda version: int(version.partition(".")[0].partition("beta")[0]) >= 15,
    supported="PostgreSQL 15 or newer",
    before=_BEFORE,
    runs_as_caller=True,
    settings=(
        Setting(
            "pg_is_in_recovery",
            "select pg_catalog.pg_is_in_recovery()",
            is_one_of(False),
            Status.FAILED,
            "this is a read-only standby; use the primary's URL",
        ),
        Setting(
            "default_transaction_read_only",
            "select pg_catalog.current_setting('default_transaction_read_only')",
            is_one_of("off"),
            Status.FAILED,
            "every call would fail; alter the database or role to set it to off",
        ),
        Setting(
            "fsync",
            "select pg_catalog.current_setting('fsync')",
            is_one_of("on"),
            Status.WARNING,
            "a power failure can corrupt the database and lose messages",
        ),
        Setting(
            "synchronous_commit",
            "select pg_catalog.current_setting('synchronous_commit')",
            lambda value: value != "off",
            Status.WARNING,
            "a crash can lose the last committed messages",
        ),
        Setting(
            "autovacuum",
            "select pg_catalog.current_setting('autovacuum')",
            is_one_of("on"),
            Status.WARNING,
            "queues become slow from dead rows without it",
        ),
        Setting(
            "server_encoding",
            "select pg_catalog.current_setting('server_encoding')",
            is_one_of("UTF8"),
            Status.WARNING,
            "bodies with other characters are refused, or in SQL_ASCII stored as unreadable bytes;"
            " use a UTF8 database",
        ),
    ),
)
