-- Routines go behind wrappers, into the schema rowq_node, and the wrappers that aside.sql has put
-- aside come back as they were. This script runs on a node, as a superuser, after aside.sql and
-- perhaps a migration, in the same transaction; route.sql or rights.sql come after it. A routine
-- that is new has no wrapper before route.sql, and cannot be called.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

create schema rowq_node;

-- Routines have the rights of now, and rights.sql gives them to wrappers.
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
