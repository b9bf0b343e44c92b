-- Set owners and rights on a node of a cluster. This script ends each transaction that changes a
-- node. It revokes what default privileges grant.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- rowq_citus owns the forwarders that run with its rights, and only rowq's owner may call them; the
-- owner owns the others, so a user acting as rowq_citus cannot change them. A wrapper has its
-- routine's owner, rights and comment. Callers keep their rights on the routine but none on its
-- schema.
do $$
declare
    v_forwarded  constant text[] := array[
        {{ routines }}
    ];
    v_forwarders constant text[] := array[
        {{ forwarder_names }}
    ];
    v_owner    constant text := (
        select quote_ident(r.rolname)
        from pg_namespace n
        join pg_roles r on r.oid = n.nspowner
        where n.nspname = 'rowq'
    );
    v_change   text;
begin
    for v_change in
        with object as (
            select
                'schema' as kind,
                quote_ident(n.nspname) as name,
                v_owner as owner,
                n.nspowner as owner_before,
                coalesce(n.nspacl, acldefault('n', n.nspowner)) as acl,
                null::aclitem[] as wanted,
                'usage' as right_of_citus,
                null as right_of_owner,
                null as said
            from pg_namespace n
            where n.nspname in ('rowq_citus', 'rowq_node')
            union all
            select
                'table',
                'rowq_citus.route',
                quote_ident(pg_get_userbyid(c.relowner)),
                c.relowner,
                coalesce(c.relacl, acldefault('r', c.relowner)),
                null,
                'select',
                'select',
                null
            from pg_class c
            where c.oid = to_regclass('rowq_citus.route')
            union all
            select
                'function',
                p.oid::regprocedure::text,
                case when p.prosecdef then 'rowq_citus' else v_owner end,
                p.proowner,
                coalesce(p.proacl, acldefault('f', p.proowner)),
                null,
                case when not p.prosecdef then 'execute' end,
                case when p.prosecdef then 'execute' end,
                null
            from pg_proc p
            where p.pronamespace = 'rowq_citus'::regnamespace
              and p.proname = any (v_forwarders)
            union all
            -- A lock of maintain counts only if its session may call maintain; on a queue's node
            -- this is a session of rowq_citus.
            select
                'function',
                w.oid::regprocedure::text,
                v_owner,
                w.proowner,
                coalesce(w.proacl, acldefault('f', w.proowner)),
                coalesce(o.proacl, acldefault('f', o.proowner)),
                case when w.proname = 'maintain' then 'execute' end,
                null,
                obj_description(o.oid, 'pg_proc')
            from pg_proc o
            join pg_proc w
                on w.proname = o.proname
                and w.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', w.proname)
            where o.pronamespace = to_regnamespace('rowq_node')
              and w.pronamespace = 'rowq'::regnamespace
              -- Without aside.sql a routine has its rights from before forwarding, while its
              -- wrapper has the current ones.
              and current_setting('rowq.is_behind', true) = 'on'
              and o.proname = any (v_forwarded)
        )
        select c.change
        from object o
        cross join lateral (
            select 1, format('alter %s %s owner to %s', o.kind, o.name, o.owner)
            union all
            select
                2,
                format('revoke all on %s %s from %s cascade', o.kind, o.name,
                    coalesce(quote_ident(r.rolname), 'public'))
            from aclexplode(o.acl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> o.owner_before
              and quote_ident(r.rolname) is distinct from o.owner
            union all
            select
                3,
                format('grant execute on function %s to %s%s', o.name,
                    coalesce(quote_ident(r.rolname), 'public'),
                    case when a.is_grantable then ' with grant option' end)
            from aclexplode(o.wanted) a
            left join pg_roles r on r.oid = a.grantee
            where quote_ident(r.rolname) is distinct from o.owner
              and r.rolname is distinct from 'rowq_citus'
            union all
            select 3, format('grant %s on %s %s to rowq_citus', o.right_of_citus, o.kind, o.name)
            where o.right_of_citus is not null
            union all
            select 3, format('grant %s on %s %s to %s', o.right_of_owner, o.kind, o.name, v_owner)
            where o.right_of_owner is not null
            union all
            select 4, format('comment on function %s is %L', o.name, o.said)
            where o.said is not null
        ) c (place, change)
        order by c.place
    loop
        execute v_change;
    end loop;

    for v_change in
        select format('grant execute on function %s to rowq_citus', o.oid::regprocedure)
        from pg_proc o
        where o.pronamespace = to_regnamespace('rowq_node')
          and o.proname = any (v_forwarded)
    loop
        execute v_change;
    end loop;
    execute format('grant connect on database %I to rowq_citus', current_database());
end;
$$;
