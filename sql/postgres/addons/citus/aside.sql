-- Move wrappers to the schema rowq_aside and the routines back to rowq, with the wrappers' current
-- rights, so that a migration finds the same as on one server. Run it on a node as a superuser
-- after check.sql; behind.sql or unroute.sql follows in the same transaction. It does nothing where
-- calls are not forwarded.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_forwarded constant text[] := array[
        {{ routines }}
    ];
    v_change  text;
begin
    if to_regnamespace('rowq_node') is null then
        return;
    end if;
    create schema rowq_aside;
    -- A wrapper calls a forwarder of its name. After a migration its parameters may differ from the
    -- routine's.
    for v_change in
        with routine as (
            select o.oid, o.proname, o.proowner, o.proacl
            from pg_proc o
            where o.pronamespace = 'rowq_node'::regnamespace
              and o.proname = any (v_forwarded)
        ),
        wrapper as (
            select w.oid, w.proname, w.proowner, w.proacl
            from pg_proc w
            where w.pronamespace = 'rowq'::regnamespace
              and w.proname = any (v_forwarded)
              and w.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', w.proname)
        )
        select c.change
        from routine o
        left join wrapper w using (proname)
        cross join lateral (
            select 1, format('alter function %s set schema rowq_aside', w.oid::regprocedure)
            where w.oid is not null
            union all
            select
                2,
                format('revoke all on function %s from %s cascade', o.oid::regprocedure,
                    coalesce(quote_ident(r.rolname), 'public'))
            from aclexplode(o.proacl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> o.proowner
              and (w.oid is not null or r.rolname = 'rowq_citus')
            union all
            select
                3,
                format('grant execute on function %s to %s%s', o.oid::regprocedure,
                    coalesce(quote_ident(r.rolname), 'public'),
                    case when a.is_grantable then ' with grant option' end)
            from aclexplode(w.proacl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> w.proowner
              and r.rolname is distinct from 'rowq_citus'
            union all
            select 4, format('alter function %s set schema rowq', o.oid::regprocedure)
        ) c (place, change)
        order by c.place
    loop
        execute v_change;
    end loop;
    drop schema rowq_node;
end;
$$;
