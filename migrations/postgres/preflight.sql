-- Runs first in the transaction of every install, upgrade and rollback: lets one in at a time, and
-- refuses here, before anything is changed, what would go wrong later.
-- Read committed: who waited for the lock must see what the one before has installed.
set transaction isolation level read committed;
set local standard_conforming_strings = on;
set local statement_timeout = 0;
set local lock_timeout = '60s';
set local search_path = '';
set local client_min_messages = warning;

do $$
begin
    perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('rowq migrate', 0));
exception
    when lock_not_available then
        raise exception 'RQ806 migration_busy: another migration has not ended for 60 seconds'
            using errcode = 'RQ806', hint = 'Try again.';
end;
$$;

-- What follows waits for tables in use; while it waits, everybody else waits behind it.
set local lock_timeout = '10s';

do $$
declare
    v_database   constant text := pg_catalog.current_database();
    v_user       constant text := current_user;
    v_schema     pg_catalog.oid;
    v_owner      pg_catalog.oid;
    v_owner_name text;
    v_comment    text;
begin
    if pg_catalog.current_setting('server_version_num')::integer < 150000 then
        raise exception 'RQ801 server_too_old: rowq needs PostgreSQL 15 or newer; this is %',
            pg_catalog.current_setting('server_version')
            using errcode = 'RQ801';
    end if;

    select n.oid, n.nspowner, pg_catalog.pg_get_userbyid(n.nspowner)
    into v_schema, v_owner, v_owner_name
    from pg_catalog.pg_namespace n
    where n.nspname = 'rowq';

    if v_schema is null then
        if not pg_catalog.has_database_privilege(v_database, 'create') then
            raise exception 'RQ803 missing_privilege: % may not create a schema in database %',
                v_user, v_database
                using errcode = 'RQ803', hint = pg_catalog.format(
                    'A DBA must run: grant create on database %I to %I;', v_database, v_user);
        end if;
        return;
    end if;

    -- Ours has a comment that says so, or (a dump can lose comments) our bookkeeping.
    v_comment := coalesce(pg_catalog.obj_description(v_schema, 'pg_namespace'), '');
    if v_comment not like 'rowq message queue%' and (
        select count(*)
        from pg_catalog.pg_class c
        where c.relnamespace = v_schema
          and c.relkind = 'r'
          and c.relname in ('migration', 'migration_log', 'meta')
    ) < 3 then
        raise exception 'RQ802 foreign_schema: database % has a schema rowq that rowq did not make',
            v_database
            using errcode = 'RQ802', hint = 'It was left alone. Use another database; if this '
                'schema was made for rowq: comment on schema rowq is ''rowq message queue'';';
    end if;

    if not pg_catalog.pg_has_role(v_owner, 'member') then
        raise exception
            'RQ803 missing_privilege: schema rowq belongs to %, and % is not a member of that role',
            v_owner_name, v_user
            using errcode = 'RQ803', hint = pg_catalog.format(
                'Connect as %1$I, or a DBA must run: grant %1$I to %2$I;', v_owner_name, v_user);
    end if;

    -- What a member of the owner makes shall belong to the owner.
    if v_owner_name <> v_user and not (
        select r.rolsuper from pg_catalog.pg_roles r where r.rolname = v_user
    ) then
        perform pg_catalog.set_config('role', v_owner_name, true);
    end if;
end;
$$;
