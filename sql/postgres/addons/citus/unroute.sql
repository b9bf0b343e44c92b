-- The wrappers that aside.sql has put aside go for good, and each node answers for itself again.
-- This script runs on every node, as a superuser, after aside.sql and in the same transaction. What
-- depends on a wrapper, such as a view, stops it.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_change text;
begin
    if to_regnamespace('rowq_aside') is null then
        return;
    end if;
    for v_change in
        select format('drop function %s', w.oid::regprocedure)
        from pg_proc w
        where w.pronamespace = 'rowq_aside'::regnamespace
    loop
        execute v_change;
    end loop;
    drop schema rowq_aside;
end;
$$;
