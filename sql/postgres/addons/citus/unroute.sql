-- Drop the wrappers of aside.sql, so that each node answers for itself again. Run it on every node
-- as a superuser, after aside.sql in the same transaction. Objects that depend on a wrapper, such
-- as a view, stop it.
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
