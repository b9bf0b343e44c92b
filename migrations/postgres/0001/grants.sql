-- Roles, ownership and rights. It may run any number of times and changes only what is not so yet.
-- A role that is missing and may not be created here is left out with a warning: create it and run
-- this again.

do $$
declare
    v_role         text;
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
                null; -- made a moment ago, through another database of this server
            when insufficient_privilege then
                raise warning 'role % is missing and % may not create it: its rights are left out; '
                    'a DBA can run "create role % nologin;", then migrate again',
                    v_role, current_user, v_role;
        end;
    end loop;

    -- Routines run with their owner's rights: that must not be a superuser. health reads who else
    -- is connected.
    if v_is_superuser and v_owned_by_superuser then
        alter schema rowq owner to rowq_owner;
        grant pg_read_all_stats to rowq_owner;
    end if;
end;
$$;

-- Everything in the schema belongs to the schema's owner, whoever migrated.
do $$
declare
    v_owner  text;
    v_object record;
begin
    select pg_catalog.pg_get_userbyid(n.nspowner)
    into v_owner
    from pg_catalog.pg_namespace n
    where n.nspname = 'rowq';

    for v_object in
        select 'table' as kind, c.oid::pg_catalog.regclass::text as name
        from pg_catalog.pg_class c
        where c.relnamespace = 'rowq'::pg_catalog.regnamespace
          and c.relkind in ('r', 'p', 'v', 'm', 'S')
          and pg_catalog.pg_get_userbyid(c.relowner) <> v_owner
          and not exists ( -- a sequence of an identity column goes with its table
              select 1
              from pg_catalog.pg_depend d
              where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                and d.objid = c.oid
                and c.relkind = 'S'
                and d.deptype in ('a', 'i')
          )
        union all
        select 'routine', p.oid::pg_catalog.regprocedure::text
        from pg_catalog.pg_proc p
        where p.pronamespace = 'rowq'::pg_catalog.regnamespace
          and pg_catalog.pg_get_userbyid(p.proowner) <> v_owner
    loop
        execute pg_catalog.format('alter %s %s owner to %I', v_object.kind, v_object.name, v_owner);
    end loop;

    if v_owner = 'rowq_owner' and not exists (
        select 1
        from pg_catalog.pg_default_acl a
        where pg_catalog.pg_get_userbyid(a.defaclrole) = 'rowq_owner'
          and a.defaclnamespace = 0
          and a.defaclobjtype = 'f'
    ) then
        alter default privileges for role rowq_owner revoke execute on functions from public;
    end if;
end;
$$;

-- Rights: execute on the routines of the role, and nothing else; for PUBLIC nothing at all.
-- dequeue_wait is the one routine that runs with its caller's rights (it commits), so its callers
-- need the helpers that it calls.
do $$
declare
    v_change text;
begin
    for v_change in
        with wanted (role_name, routine_name) as (
            values
                ('rowq_producer', 'enqueue'),
                ('rowq_producer', 'enqueue_batch'),
                ('rowq_producer', 'cancel'),
                ('rowq_producer', 'version'),
                ('rowq_consumer', 'dequeue_fast'),
                ('rowq_consumer', 'dequeue_wait'),
                ('rowq_consumer', 'internal_look'),
                ('rowq_consumer', 'internal_require_autocommit'),
                ('rowq_consumer', 'internal_wait_until'),
                ('rowq_consumer', 'listen'),
                ('rowq_consumer', 'unlisten'),
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
                ('rowq_consumer', 'queue_stats'),
                ('rowq_consumer', 'version'),
                ('rowq_admin', 'create_queue'),
                ('rowq_admin', 'alter_queue'),
                ('rowq_admin', 'drop_queue'),
                ('rowq_admin', 'pause_queue'),
                ('rowq_admin', 'resume_queue'),
                ('rowq_admin', 'purge_queue'),
                ('rowq_admin', 'enqueue'),
                ('rowq_admin', 'enqueue_batch'),
                ('rowq_admin', 'dequeue_fast'),
                ('rowq_admin', 'dequeue_wait'),
                ('rowq_admin', 'internal_look'),
                ('rowq_admin', 'internal_require_autocommit'),
                ('rowq_admin', 'internal_wait_until'),
                ('rowq_admin', 'listen'),
                ('rowq_admin', 'unlisten'),
                ('rowq_admin', 'peek'),
                ('rowq_admin', 'complete'),
                ('rowq_admin', 'retry_later'),
                ('rowq_admin', 'fail_now'),
                ('rowq_admin', 'release'),
                ('rowq_admin', 'extend_lease'),
                ('rowq_admin', 'cancel'),
                ('rowq_admin', 'reset'),
                ('rowq_admin', 'maintain'),
                ('rowq_admin', 'reap'),
                ('rowq_admin', 'promote'),
                ('rowq_admin', 'archive'),
                ('rowq_admin', 'purge_archive'),
                ('rowq_admin', 'queue_stats'),
                ('rowq_admin', 'get_message'),
                ('rowq_admin', 'list_dead'),
                ('rowq_admin', 'health'),
                ('rowq_admin', 'version'),
                ('rowq_monitor', 'queue_stats'),
                ('rowq_monitor', 'list_dead'),
                ('rowq_monitor', 'health'),
                ('rowq_monitor', 'version')
        ),
        member as (
            select r.oid, pg_catalog.quote_ident(r.rolname) as grantee, r.rolname
            from pg_catalog.pg_roles r
            where r.rolname in ('rowq_producer', 'rowq_consumer', 'rowq_admin', 'rowq_monitor')
            union all
            select 0, 'public', null
        ),
        object as (
            select
                'schema' as kind,
                'rowq' as name,
                null as routine_name,
                coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) as acl
            from pg_catalog.pg_namespace n
            where n.nspname = 'rowq'
            union all
            select
                case c.relkind when 'S' then 'sequence' else 'table' end,
                c.oid::pg_catalog.regclass::text,
                null,
                coalesce(c.relacl, pg_catalog.acldefault(
                    case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
            from pg_catalog.pg_class c
            where c.relnamespace = 'rowq'::pg_catalog.regnamespace
              and c.relkind in ('r', 'p', 'v', 'm', 'S')
            union all
            -- Of a table's rows: who may use it can stop the table from being changed or dropped.
            select
                'type',
                t.oid::pg_catalog.regtype::text,
                null,
                coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))
            from pg_catalog.pg_type t
            where t.typnamespace = 'rowq'::pg_catalog.regnamespace
              and t.typtype = 'c'
            union all
            select
                'routine',
                p.oid::pg_catalog.regprocedure::text,
                p.proname,
                coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))
            from pg_catalog.pg_proc p
            where p.pronamespace = 'rowq'::pg_catalog.regnamespace
        ),
        given as (
            select o.kind, o.name, m.oid, right_given.privilege_type
            from object o
            cross join pg_catalog.aclexplode(o.acl) right_given
            join member m on m.oid = right_given.grantee
        ),
        due as (
            select 'schema' as kind, 'rowq' as name, m.oid, 'USAGE' as privilege_type
            from member m
            where m.oid <> 0
            union all
            select o.kind, o.name, m.oid, 'EXECUTE'
            from wanted w
            join member m on m.rolname = w.role_name
            join object o on o.kind = 'routine' and o.routine_name = w.routine_name
        )
        select pg_catalog.format(
            case
                when d.oid is null then 'revoke %s on %s %s from %s'
                else 'grant %s on %s %s to %s'
            end,
            privilege_type, kind, name, m.grantee)
        from given g
        full join due d using (kind, name, oid, privilege_type)
        join member m using (oid)
        where g.oid is null or d.oid is null
        order by kind, name, m.grantee, privilege_type
    loop
        execute v_change;
    end loop;
end;
$$;
