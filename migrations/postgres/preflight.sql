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
    v_other              text;
begin
    if pg_catalog.current_setting('server_version_num')::integer < 150000 then
        raise exception 'RQ801 server_too_old: rowq needs PostgreSQL 15 or newer; this is %',
            pg_catalog.current_setting('server_version')
            using errcode = 'RQ801';
    end if;

    select n.oid, n.nspowner, r.rolname, r.rolsuper
    into v_schema, v_owner, v_owner_name, v_owner_is_superuser
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_roles r on r.oid = n.nspowner
    where n.nspname = 'rowq';

    if v_schema is null and not pg_catalog.has_database_privilege(v_database, 'create') then
        raise exception 'RQ803 missing_privilege: % may not create a schema in database %',
            v_user, v_database
            using errcode = 'RQ803', hint = pg_catalog.format(
                'A DBA must run: grant create on database %I to %I;', v_database, v_user);
    end if;

    -- What a superuser installs will belong to rowq_owner and run with its rights.
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
                'RQ803 missing_privilege: role rowq_owner is there already, and %', v_why
                using errcode = 'RQ803', hint = 'A DBA must run: alter role rowq_owner nologin '
                    'nosuperuser; and revoke it from its members. Or drop it.';
        end if;
    end if;
    perform pg_catalog.set_config(
        'rowq.has_schema', case when v_schema is null then 'no' else 'yes' end, true);
    if v_schema is null then
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

    -- A trigger or a default that the owner has added to a table runs with the rights of whoever
    -- migrates, and "set role" is no wall: what runs can reset it. So nobody else may be the owner.
    select r.rolname
    into v_other
    from pg_catalog.pg_roles r
    where not v_owner_is_superuser
      and r.rolcanlogin
      and not r.rolsuper
      and r.rolname <> session_user
      and pg_catalog.pg_has_role(r.oid, v_owner, 'member')
    order by r.rolname = v_owner_name desc, r.rolname
    limit 1;
    if found then
        raise exception
            'RQ803 missing_privilege: schema rowq belongs to %, as whom % acts: what that role has '
            'put there would run with the rights of %', v_owner_name, v_other, session_user
            using errcode = 'RQ803', hint = case
                when v_other = v_owner_name then pg_catalog.format('Connect as %I.', v_other)
                else pg_catalog.format('Connect as %1$I, or a DBA must run: revoke %2$I from %1$I;',
                    v_other, v_owner_name)
            end;
    end if;

    -- An extension that somebody has put there is in nobody's way, nor are his default privileges.
    select pg_catalog.pg_describe_object(d.classid, d.objid, 0) || ' belongs to ' || r.rolname
    into v_why
    from pg_catalog.pg_depend d
    join pg_catalog.pg_shdepend s
        on s.classid = d.classid
        and s.objid = d.objid
        and s.dbid = (select b.oid from pg_catalog.pg_database b where b.datname = v_database)
        and s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        and s.deptype = 'o'
    join pg_catalog.pg_roles r on r.oid = s.refobjid
    where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
      and d.refobjid = v_schema
      and d.classid not in (
          'pg_catalog.pg_extension'::pg_catalog.regclass,
          'pg_catalog.pg_default_acl'::pg_catalog.regclass
      )
      and r.oid <> v_owner
      and not r.rolsuper
      and r.rolname <> session_user
    limit 1;
    if found then
        raise exception 'RQ802 foreign_schema: %, and not to %, whom schema rowq belongs to',
            v_why, v_owner_name
            using errcode = 'RQ802', hint = 'Move it to another schema.';
    end if;

    -- What a member of the owner makes shall belong to the owner.
    if v_owner_name <> v_user and not v_is_superuser then
        perform pg_catalog.set_config('role', v_owner_name, true);
    end if;

    if exists (
        select 1
        from pg_catalog.pg_class c
        where c.relnamespace = v_schema
          and c.relname = 'migration'
          and c.relkind = 'r'
    ) then
        lock table rowq.migration in share row exclusive mode;
    end if;
exception
    when lock_not_available then
        raise exception 'RQ806 migration_busy: another migration has not ended for 60 seconds'
            using errcode = 'RQ806', hint = 'Try again.';
end;
$$;

-- What grants.sql finds to be granted on other routines than these comes from default privileges.
do $$
begin
    perform pg_catalog.set_config(
        'rowq.routines',
        coalesce(pg_catalog.array_agg(p.oid), '{}')::text,
        true)
    from pg_catalog.pg_proc p
    where p.pronamespace = pg_catalog.to_regnamespace('rowq');
end;
$$;

-- What follows waits for tables in use; while it waits, everybody else waits behind it.
set local lock_timeout = '10s';
