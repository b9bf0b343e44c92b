-- Move routines to the schema rowq_node and the wrappers of aside.sql back to rowq. Run it on a
-- node as a superuser, after aside.sql and possibly a migration, in the same transaction; route.sql
-- or rights.sql follows. A new routine cannot be called before route.sql creates its wrapper.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

create schema rowq_node;

-- The routines have the current rights; rights.sql copies them to the wrappers.
set local rowq.is_behind = 'on';

comment on schema rowq_node is 'rowq message queue: routines that answer for this node';

{{ moves }}

do $$
declare
    v_change text;
begin
    if to_regnamespace('rowq_aside') is null then
        return;
    end if;
    for v_change in
        select format('alter function %s set schema rowq', w.oid::regprocedure)
        from pg_proc w
        where w.pronamespace = 'rowq_aside'::regnamespace
    loop
        execute v_change;
    end loop;
    drop schema rowq_aside;
end;
$$;
