-- Wrappers go, and routines have their names again: what route.sql did is taken back, with the
-- rights that were given or taken meanwhile. This script runs on every node, as a superuser and in
-- one transaction. It does nothing where calls are not carried.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_change text;
begin
    if to_regnamespace('rowq_node') is null then
        return;
    end if;
    for v_change in
        select c.change
        from pg_proc o
        left join pg_proc w
            on w.proname = o.proname
            and w.proargtypes = o.proargtypes
            and w.pronamespace = 'rowq'::regnamespace
        cross join lateral (
            select
                1,
                format('revoke all on function %s from %s cascade', o.oid::regprocedure,
                    coalesce(quote_ident(r.rolname), 'public'))
            from aclexplode(o.proacl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> o.proowner
              and (w.oid is not null or r.rolname = 'rowq_citus')
            union all
            select
                2,
                format('grant execute on function %s to %s%s', o.oid::regprocedure,
                    coalesce(quote_ident(r.rolname), 'public'),
                    case when a.is_grantable then ' with grant option' end)
            from aclexplode(w.proacl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> w.proowner
              and r.rolname is distinct from 'rowq_citus'
            union all
            select 3, format('drop function %s', w.oid::regprocedure)
            where w.oid is not null
            union all
            select 4, format('alter function %s set schema rowq', o.oid::regprocedure)
        ) c (place, change)
        where o.pronamespace = 'rowq_node'::regnamespace
        order by c.place
    loop
        execute v_change;
    end loop;
    drop schema rowq_node;
end;
$$;
