-- Drop unused forwarders: those of the previous release after all nodes have the new wrappers, or
-- all if no call is forwarded. Run it on the coordinator first, because Citus drops distributed
-- functions there for all nodes, then on every other node, as a superuser, after check.sql in the
-- same transaction.
--
-- The empty table rowq_citus.route stays, so a later installation finds the queues' nodes.
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_forwarders       constant text[] := array[
        {{ forwarder_names }}
    ];
    v_owner          constant oid := (
        select n.nspowner from pg_namespace n where n.nspname = 'rowq'
    );
    v_is_forwarding    constant boolean := to_regnamespace('rowq_node') is not null;
    v_is_coordinator boolean;
    v_change         text;
begin
    select g.groupid = 0 into v_is_coordinator from pg_dist_local_group g;
    perform set_config('citus.enable_ddl_propagation', v_is_coordinator::text, true);
    for v_change in
        select format('drop function %s', p.oid::regprocedure)
        from pg_proc p
        where p.pronamespace = to_regnamespace('rowq_citus')
          and p.proowner in (to_regrole('rowq_citus'), v_owner)
          and (not v_is_forwarding or p.proname <> all (v_forwarders))
    loop
        execute v_change;
    end loop;
    if v_is_forwarding or to_regrole('rowq_citus') is null then
        return;
    end if;

    -- Another database of this server may still forward calls.
    perform set_config('citus.enable_ddl_propagation', 'off', true);
    execute format('revoke connect on database %I from rowq_citus', current_database());
    if to_regnamespace('rowq_citus') is not null then
        revoke all on schema rowq_citus from rowq_citus;
    end if;
    if not exists (
        select
        from pg_shdepend d
        where d.refclassid = 'pg_authid'::regclass
          and d.refobjid = to_regrole('rowq_citus')
          and d.deptype = 'o'
    ) then
        alter role rowq_citus nologin password null;
    end if;
end;
$$;
