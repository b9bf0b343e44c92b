-- Set roles, ownership and rights. The script can be run again and changes only differences. It
-- skips a missing role that it cannot create, with a warning: create the role and run the script
-- again.

do $$
declare
    v_role         text;
    v_why          text;
    v_remedy       text;
    v_is_superuser constant boolean := (
        select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user
    );
    v_owned_by_superuser constant boolean := (
        select r.rolsuper
        from pg_catalog.pg_namespace n
        join pg_catalog.pg_roles r on r.oid = n.nspowner
        where n.nspname = 'rowq'
    );
begin
    foreach v_role in array array[
        'rowq_owner',
        'rowq_producer',
        'rowq_consumer',
        'rowq_admin',
        'rowq_monitor'
    ] loop
        continue when v_role = 'rowq_owner' and not (v_is_superuser and v_owned_by_superuser);
        continue when exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_role);
        begin
            execute pg_catalog.format('create role %I nologin', v_role);
        exception
            when duplicate_object or unique_violation then
                null; -- Another database of this server has just created it.
            when insufficient_privilege then
                raise warning 'role % is missing, and % cannot create it: its rights are skipped; '
                    'a DBA can run "create role % nologin;", then migrate again',
                    v_role, current_user, v_role;
        end;
    end loop;

    -- A role that created one of these roles, or can act as it, can take its rights. A superuser's
    -- first installation refuses that; otherwise it is a warning.
    for v_why, v_remedy in
        select
            pg_catalog.format('role %I ', r.rolname) || case
                when r.rolsuper then 'is a superuser'
                when r.rolcreaterole then 'may create roles'
                when r.rolcanlogin then 'may log in'
                else pg_catalog.format('can be granted by %I', a.rolname)
            end,
            case
                when r.rolsuper or r.rolcreaterole or r.rolcanlogin
                    then pg_catalog.format(
                        'alter role %I nologin nosuperuser nocreaterole;', r.rolname)
                else pg_catalog.format(
                    'revoke admin option for %I from %I cascade;', r.rolname, a.rolname)
            end
        from pg_catalog.pg_roles r
        left join lateral (
            select m.rolname
            from pg_catalog.pg_auth_members g
            join pg_catalog.pg_roles m on m.oid = g.member
            where g.roleid = r.oid
              and g.admin_option
              and not m.rolsuper
              and m.rolname <> session_user
              and m.oid not in (
                  select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'rowq'
              )
            order by m.rolname
            limit 1
        ) a on true
        where r.rolname in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
          and (r.rolsuper or r.rolcreaterole or r.rolcanlogin or a.rolname is not null)
        order by r.rolname
    loop
        if v_is_superuser and pg_catalog.current_setting('rowq.routines', true) = '{}' then
            raise exception 'RQ803 missing_privilege: %', v_why
                using errcode = 'RQ803',
                      hint = pg_catalog.format('A DBA must run: %s Or drop the role.', v_remedy);
        end if;
        raise warning '%: if that is not intended, a DBA can run "%"', v_why, v_remedy;
    end loop;

    -- Routines run with their owner's rights, so the owner must not be a superuser. It may read all
    -- statistics, because health names other sessions.
    if v_is_superuser and v_owned_by_superuser then
        alter schema rowq owner to rowq_owner;
        grant pg_read_all_stats to rowq_owner;
    end if;
end;
$$;

-- Give all objects in the schema to the schema's owner, except an extension's, and those of a role
-- that is neither a superuser nor migrating.
do $$
declare
    v_owner  pg_catalog.oid;
    v_change text;
begin
    select n.nspowner
    into v_owner
    from pg_catalog.pg_namespace n
    where n.nspname = 'rowq';

    for v_change in
        with object as (
            select
                'table' as kind,
                c.oid::pg_catalog.regclass::text as name,
                c.relowner as owner,
                c.oid,
                c.tableoid
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm', 'S')
              and not exists ( -- A sequence of an identity column goes with its table.
                  select 1
                  from pg_catalog.pg_depend d
                  where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    and d.objid = c.oid
                    and c.relkind = 'S'
                    and d.deptype in ('a', 'i')
              )
            union all
            select 'routine', p.oid::pg_catalog.regprocedure::text, p.proowner, p.oid, p.tableoid
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
        )
        select pg_catalog.format(
            'alter %s %s owner to %I', o.kind, o.name, pg_catalog.pg_get_userbyid(v_owner))
        from object o
        join pg_catalog.pg_roles r on r.oid = o.owner
        where o.owner <> v_owner
          and (r.rolsuper or r.rolname = session_user)
          and not exists (
              select 1
              from pg_catalog.pg_depend d
              where d.classid = o.tableoid
                and d.objid = o.oid
                and d.deptype = 'e'
          )
    loop
        execute v_change;
    end loop;

    if pg_catalog.pg_get_userbyid(v_owner) = 'rowq_owner' and not exists (
        select 1
        from pg_catalog.pg_default_acl a
        where a.defaclrole = v_owner
          and a.defaclnamespace = 0
          and a.defaclobjtype = 'f'
    ) then
        alter default privileges for role rowq_owner revoke execute on functions from public;
    end if;

    -- Revoke default privileges on new objects of rowq_owner, and of any owner in the schema.
    for v_change in
        select distinct pg_catalog.format(
            'alter default privileges for role %I %s revoke all on %s from %s cascade',
            pg_catalog.pg_get_userbyid(v_owner),
            case when a.defaclnamespace <> 0 then 'in schema rowq' end,
            case a.defaclobjtype
                when 'r' then 'tables'
                when 'S' then 'sequences'
                when 'f' then 'functions'
                when 'T' then 'types'
                when 'n' then 'schemas'
                else 'large objects'
            end,
            case when given.grantee = 0 then 'public' else pg_catalog.quote_ident(r.rolname) end)
        from pg_catalog.pg_default_acl a
        cross join pg_catalog.aclexplode(a.defaclacl) given
        left join pg_catalog.pg_roles r on r.oid = given.grantee
        where a.defaclrole = v_owner
          and given.grantee <> v_owner
          and (given.grantee = 0 or r.oid is not null)
          and (
              pg_catalog.pg_get_userbyid(v_owner) = 'rowq_owner' and a.defaclnamespace = 0
              or a.defaclnamespace = 'rowq'::pg_catalog.regnamespace
          )
    loop
        execute v_change;
    end loop;
end;
$$;

-- Each rowq role may execute only its routines, and PUBLIC none. Another role keeps rights that a
-- DBA may have granted: to use the schema and to execute public routines. It keeps no right on
-- objects that are new in this transaction, because that comes from default privileges.
-- dequeue_wait and wait_for_result run with their caller's rights, because they commit, so their
-- callers need the helpers too.
do $$
declare
    v_change text;
begin
    for v_change in
        with wanted (role_name, routine_name) as (
            values
                -- rights: generated from contract.toml by make generate
                ('rowq_admin', 'create_queue'),
                ('rowq_admin', 'alter_queue'),
                ('rowq_admin', 'drop_queue'),
                ('rowq_admin', 'pause_queue'),
                ('rowq_admin', 'resume_queue'),
                ('rowq_admin', 'bind_topic'),
                ('rowq_admin', 'unbind_topic'),
                ('rowq_admin', 'purge_queue'),
                ('rowq_admin', 'enqueue'),
                ('rowq_admin', 'enqueue_batch'),
                ('rowq_admin', 'publish'),
                ('rowq_admin', 'publish_batch'),
                ('rowq_admin', 'dequeue_fast'),
                ('rowq_admin', 'complete_and_dequeue'),
                ('rowq_admin', 'dequeue_wait'),
                ('rowq_admin', 'internal_poll'),
                ('rowq_admin', 'internal_require_autocommit'),
                ('rowq_admin', 'internal_wait_until'),
                ('rowq_admin', 'peek'),
                ('rowq_admin', 'complete'),
                ('rowq_admin', 'retry_later'),
                ('rowq_admin', 'fail_now'),
                ('rowq_admin', 'release'),
                ('rowq_admin', 'extend_lease'),
                ('rowq_admin', 'cancel'),
                ('rowq_admin', 'cancel_many'),
                ('rowq_admin', 'reset'),
                ('rowq_admin', 'alter_message'),
                ('rowq_admin', 'discard_dead'),
                ('rowq_admin', 'create_schedule'),
                ('rowq_admin', 'alter_schedule'),
                ('rowq_admin', 'drop_schedule'),
                ('rowq_admin', 'run_schedule'),
                ('rowq_admin', 'list_schedules'),
                ('rowq_admin', 'next_ticks'),
                ('rowq_admin', 'maintain'),
                ('rowq_admin', 'reap'),
                ('rowq_admin', 'promote'),
                ('rowq_admin', 'archive'),
                ('rowq_admin', 'purge_archive'),
                ('rowq_admin', 'report_worker'),
                ('rowq_admin', 'after_failover'),
                ('rowq_admin', 'queue_stats'),
                ('rowq_admin', 'get_message'),
                ('rowq_admin', 'explain_message'),
                ('rowq_admin', 'find_message'),
                ('rowq_admin', 'get_result'),
                ('rowq_admin', 'wait_for_result'),
                ('rowq_admin', 'internal_poll_result'),
                ('rowq_admin', 'get_history'),
                ('rowq_admin', 'list_dead'),
                ('rowq_admin', 'list_claims'),
                ('rowq_admin', 'list_workers'),
                ('rowq_admin', 'list_delayed'),
                ('rowq_admin', 'list_topics'),
                ('rowq_admin', 'health'),
                ('rowq_admin', 'version'),
                ('rowq_admin', 'listen'),
                ('rowq_admin', 'unlisten'),
                ('rowq_admin', 'elect_leader'),
                ('rowq_producer', 'enqueue'),
                ('rowq_producer', 'enqueue_batch'),
                ('rowq_producer', 'publish'),
                ('rowq_producer', 'publish_batch'),
                ('rowq_producer', 'cancel'),
                ('rowq_producer', 'cancel_many'),
                ('rowq_producer', 'alter_message'),
                ('rowq_producer', 'next_ticks'),
                ('rowq_producer', 'get_result'),
                ('rowq_producer', 'wait_for_result'),
                ('rowq_producer', 'internal_poll_result'),
                ('rowq_producer', 'internal_require_autocommit'),
                ('rowq_producer', 'internal_wait_until'),
                ('rowq_producer', 'version'),
                ('rowq_consumer', 'dequeue_fast'),
                ('rowq_consumer', 'complete_and_dequeue'),
                ('rowq_consumer', 'dequeue_wait'),
                ('rowq_consumer', 'internal_poll'),
                ('rowq_consumer', 'internal_require_autocommit'),
                ('rowq_consumer', 'internal_wait_until'),
                ('rowq_consumer', 'peek'),
                ('rowq_consumer', 'complete'),
                ('rowq_consumer', 'retry_later'),
                ('rowq_consumer', 'fail_now'),
                ('rowq_consumer', 'release'),
                ('rowq_consumer', 'extend_lease'),
                ('rowq_consumer', 'maintain'),
                ('rowq_consumer', 'reap'),
                ('rowq_consumer', 'promote'),
                ('rowq_consumer', 'archive'),
                ('rowq_consumer', 'report_worker'),
                ('rowq_consumer', 'queue_stats'),
                ('rowq_consumer', 'version'),
                ('rowq_consumer', 'listen'),
                ('rowq_consumer', 'unlisten'),
                ('rowq_consumer', 'elect_leader'),
                ('rowq_monitor', 'list_schedules'),
                ('rowq_monitor', 'next_ticks'),
                ('rowq_monitor', 'queue_stats'),
                ('rowq_monitor', 'explain_message'),
                ('rowq_monitor', 'list_dead'),
                ('rowq_monitor', 'list_claims'),
                ('rowq_monitor', 'list_workers'),
                ('rowq_monitor', 'list_delayed'),
                ('rowq_monitor', 'list_topics'),
                ('rowq_monitor', 'health'),
                ('rowq_monitor', 'version')
                -- end of rights
        ),
        member as (
            select
                r.oid,
                pg_catalog.quote_ident(r.rolname) as grantee,
                r.rolname,
                r.rolname in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
                    as is_ours
            from pg_catalog.pg_roles r
            union all
            select 0, 'public', null, true
        ),
        object as (
            select
                'schema' as kind,
                'rowq' as name,
                null as routine_name,
                pg_catalog.current_setting('rowq.has_schema', true) is distinct from 'no'
                    as may_be_given,
                n.oid,
                n.tableoid,
                n.nspowner as owner,
                coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) as acl
            from pg_catalog.pg_namespace n
            where n.nspname = 'rowq'
            union all
            select
                case c.relkind when 'S' then 'sequence' else 'table' end,
                c.oid::pg_catalog.regclass::text,
                null,
                false,
                c.oid,
                c.tableoid,
                c.relowner,
                coalesce(c.relacl, pg_catalog.acldefault(
                    case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm', 'S')
            union all
            -- Count a right on a column as one on its table: revoking it there revokes it on the
            -- columns too.
            select 'table', c.oid::pg_catalog.regclass::text, null, false,
                   c.oid, c.tableoid, c.relowner, a.attacl
            from pg_catalog.pg_class c
            join pg_catalog.pg_attribute a on a.attrelid = c.oid
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm')
              and a.attacl is not null
            union all
            -- Include each table's row type, because a role that may use it can block changes of
            -- the table.
            select
                'type',
                t.oid::pg_catalog.regtype::text,
                null,
                false,
                c.oid,
                c.tableoid,
                t.typowner,
                coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))
            from pg_catalog.pg_type t
            join pg_catalog.pg_class c on c.reltype = t.oid
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm')
            union all
            select
                'routine',
                p.oid::pg_catalog.regprocedure::text,
                p.proname,
                p.proname in (select w.routine_name from wanted w) and coalesce(
                    p.oid = any (nullif(
                        pg_catalog.current_setting('rowq.routines', true), '')::pg_catalog.oid[]),
                    true),
                p.oid,
                p.tableoid,
                p.proowner,
                coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
        ),
        given as (
            select distinct
                o.kind,
                o.name,
                m.oid,
                right_given.privilege_type,
                right_given.is_grantable
            from object o
            cross join pg_catalog.aclexplode(o.acl) right_given
            join member m on m.oid = right_given.grantee
            where m.oid <> o.owner
              and (m.is_ours or not o.may_be_given or right_given.privilege_type = 'CREATE')
              and not exists (
                  select 1
                  from pg_catalog.pg_depend d
                  where d.classid = o.tableoid
                    and d.objid = o.oid
                    and d.deptype = 'e'
              )
        ),
        due as (
            select 'schema' as kind, 'rowq' as name, m.oid, 'USAGE' as privilege_type,
                   false as is_grantable
            from member m
            where m.is_ours
              and m.oid <> 0
            union all
            select o.kind, o.name, m.oid, 'EXECUTE', false
            from wanted w
            join member m on m.rolname = w.role_name
            join object o on o.kind = 'routine' and o.routine_name = w.routine_name
        )
        select pg_catalog.format(
            case
                when d.oid is null then 'revoke %s on %s %s from %s cascade'
                else 'grant %s on %s %s to %s'
            end,
            privilege_type, kind, name, m.grantee)
        from given g
        full join due d using (kind, name, oid, privilege_type, is_grantable)
        join member m using (oid)
        where g.oid is null or d.oid is null
        order by kind, name, m.grantee, privilege_type, d.oid is not null
    loop
        execute v_change;
    end loop;
end;
$$;

-- Report other roles' rights, because the DBA may not have intended them.
do $$
declare
    v_grantee text;
    v_names   text;
begin
    for v_grantee, v_names in
        with object as (
            select 'schema rowq' as name, n.nspowner as owner, n.nspacl as acl
            from pg_catalog.pg_namespace n
            where n.nspname = 'rowq'
            union all
            select p.proname, p.proowner, p.proacl
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
              and not exists (
                  select 1
                  from pg_catalog.pg_depend d
                  where d.classid = p.tableoid
                    and d.objid = p.oid
                    and d.deptype = 'e'
              )
        )
        select pg_catalog.quote_ident(r.rolname), pg_catalog.string_agg(distinct o.name, ', ')
        from object o
        cross join pg_catalog.aclexplode(o.acl) given
        join pg_catalog.pg_roles r on r.oid = given.grantee
        where r.oid <> o.owner
          and r.rolname not in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
        group by r.rolname
        order by r.rolname
    loop
        raise warning 'role % has its own privileges on %: revoke them if that is not intended',
            v_grantee, v_names;
    end loop;
end;
$$;
