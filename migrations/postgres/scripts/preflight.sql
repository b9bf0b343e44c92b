-- The checks before every install, upgrade and rollback; trust.sql and lock.sql follow in the same
-- transaction. The isolation level is read committed, because a migration that waited for the lock
-- must see the previous one's changes.
set transaction isolation level read committed;
set local standard_conforming_strings = on;
set local statement_timeout = 0;
set local lock_timeout = '60s';
set local search_path = '';
set local client_min_messages = warning;
-- The installation must not depend on the database's settings.
set local default_table_access_method = heap;
set local quote_all_identifiers = off;
-- A node of a Citus cluster is installed alone; elsewhere the setting has no effect.
set local citus.enable_ddl_propagation = off;

do $$
declare
    v_database     constant text := pg_catalog.current_database();
    v_user         constant text := current_user;
    v_is_superuser constant boolean := (
        select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user
    );
    v_schema             pg_catalog.oid;
    v_owner              pg_catalog.oid;
    v_owner_name         text;
    v_owner_is_superuser boolean;
    v_comment            text;
    v_why                text;
begin
    if pg_catalog.current_setting('server_version_num')::integer < 150000 then
        raise exception 'RQ801 server_too_old: rowq needs PostgreSQL 15 or newer; this is %',
            pg_catalog.current_setting('server_version')
            using errcode = 'RQ801';
    end if;

    -- On a Citus node wrappers replace the routines. A migration would replace these, and calls
    -- would not be forwarded. Another owner's schema of that name has no meaning.
    if exists (
        select 1
        from pg_catalog.pg_namespace r
        join pg_catalog.pg_namespace n on n.nspowner = r.nspowner
        where r.nspname = 'rowq'
          and n.nspname = 'rowq_node'
    ) then
        raise exception 'RQ809 routed_database: this database is a node of a Citus cluster'
            using errcode = 'RQ809', hint = 'The add-on in sql/postgres/addons/citus upgrades '
                'all nodes together.';
    end if;

    -- After "alter database ... set role" by the database's owner, a superuser's new objects would
    -- belong to that role.
    if session_user <> v_user and exists (
        select 1
        from pg_catalog.pg_roles r
        where r.rolname = session_user
          and r.rolsuper
    ) then
        raise exception 'RQ803 missing_privilege: superuser % acts as %, whose objects would '
            'run with a superuser''s rights', session_user, v_user
            using errcode = 'RQ803', hint = pg_catalog.format(
                'Connect as %I, or remove the setting: alter database %I reset role;',
                v_user, v_database);
    end if;

    select n.oid, n.nspowner, r.rolname, r.rolsuper
    into v_schema, v_owner, v_owner_name, v_owner_is_superuser
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_roles r on r.oid = n.nspowner
    where n.nspname = 'rowq';

    if v_schema is null and not pg_catalog.has_database_privilege(v_database, 'create') then
        raise exception 'RQ803 missing_privilege: role % lacks CREATE on database %',
            v_user, v_database
            using errcode = 'RQ803', hint = pg_catalog.format(
                'A DBA must run: grant create on database %I to %I;', v_database, v_user);
    end if;

    -- A superuser's installation belongs to rowq_owner and runs with its rights, so no ordinary
    -- role may be able to act as rowq_owner.
    if v_is_superuser and coalesce(v_owner_is_superuser, true) then
        select case when o.rolsuper then 'is a superuser' else r.rolname || ' can act as it' end
        into v_why
        from pg_catalog.pg_roles o
        join pg_catalog.pg_roles r
            on o.rolsuper
            or r.rolcanlogin and not r.rolsuper and pg_catalog.pg_has_role(r.oid, o.oid, 'member')
        where o.rolname = 'rowq_owner'
        limit 1;
        if found then
            raise exception
                'RQ803 missing_privilege: role rowq_owner exists, and %', v_why
                using errcode = 'RQ803', hint = 'A DBA must run: alter role rowq_owner nologin '
                    'nosuperuser; and revoke it from its members. Or drop it.';
        end if;
    end if;
    perform pg_catalog.set_config(
        'rowq.has_schema', case when v_schema is null then 'no' else 'yes' end, true);
    if v_schema is null then
        if pg_catalog.current_setting('server_encoding') <> 'UTF8' then
            raise warning 'database % has encoding %: bodies with other characters are refused, or '
                'in SQL_ASCII stored as unreadable bytes; create databases for queues with: create '
                'database ... encoding ''UTF8'' template template0;',
                v_database, pg_catalog.current_setting('server_encoding');
        end if;
        return;
    end if;

    -- rowq's schema has rowq's comment, or at least its tables, because a dump can lose comments.
    v_comment := coalesce(pg_catalog.obj_description(v_schema, 'pg_namespace'), '');
    if v_comment not like 'rowq message queue%' and (
        select count(*)
        from pg_catalog.pg_class c
        where c.relnamespace = v_schema
          and c.relkind = 'r'
          and c.relname in ('migration', 'migration_log', 'meta')
    ) < 3 then
        raise exception 'RQ802 foreign_schema: schema rowq in database % was not created by rowq',
            v_database
            using errcode = 'RQ802', hint = 'Nothing was changed. Use another database, or if '
                'the schema is for rowq: comment on schema rowq is ''rowq message queue'';';
    end if;

    if not pg_catalog.pg_has_role(v_owner, 'member') then
        raise exception
            'RQ803 missing_privilege: schema rowq belongs to %, and % is not a member of that role',
            v_owner_name, v_user
            using errcode = 'RQ803', hint = pg_catalog.format(
                'Connect as %1$I, or a DBA must run: grant %1$I to %2$I;', v_owner_name, v_user);
    end if;
end;
$$;
