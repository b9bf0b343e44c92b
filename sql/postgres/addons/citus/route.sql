-- Wrappers with the names of routines carry calls to the node that has the queue. This script runs
-- on every node, as a superuser, after behind.sql and in the same transaction, and after carry.sql
-- has run on all nodes and distribute.sql on the coordinator; then rights.sql. It may run again: a
-- wrapper whose parameters and columns are what they were stays the same object.
--
-- A session that says "set rowq.here = 'on'" is answered by its own node alone. In a call that was
-- carried it is 'carried', which is the same for what the routine calls, and is for nobody to set.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_change text;
begin
    for v_change in
        select format('drop function %s', w.oid::regprocedure)
        from pg_proc o
        join pg_proc w
            on w.proname = o.proname
            and w.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', w.proname)
        where o.pronamespace = 'rowq_node'::regnamespace
          and w.pronamespace = 'rowq'::regnamespace
          and (
              pg_get_function_identity_arguments(w.oid), pg_get_function_result(w.oid)
          ) <> (
              pg_get_function_identity_arguments(o.oid), pg_get_function_result(o.oid)
          )
    loop
        execute v_change;
    end loop;
end;
$$;

{{ wrappers }}
