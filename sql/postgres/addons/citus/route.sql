-- Create wrappers with the routines' names that forward calls to the queue's node. Run it on every
-- node as a superuser, after behind.sql in the same transaction, after forward.sql on all nodes and
-- distribute.sql on the coordinator; rights.sql follows. It can be run again and keeps a wrapper
-- with the same parameters and columns.
--
-- After "set rowq.here = 'on'", only the session's node answers. In a forwarded call it is
-- 'forwarded', with the same effect on nested calls; users must not set that.
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
