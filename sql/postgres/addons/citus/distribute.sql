-- What tells Citus where a call goes. This script runs on the coordinator, as a superuser and in
-- one transaction, after carry.sql has run on every node; then route.sql runs on every node. It
-- runs again after a node was added or taken away.
set local citus.enable_ddl_propagation = on;
set local citus.multi_shard_modify_mode to 'sequential';
set local citus.shard_replication_factor to 1;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- The table stays empty: it lends its hash to names. 64 shards are enough for as many nodes, and
-- for moving those to a new node to which no queue belongs yet. It has no colocation with tables of
-- others, so that nobody who moves those moves queues.
do $$
declare
    v_carriers constant text[] := array[
        {{ distributed_names }}
    ];
begin
    if to_regclass('rowq_citus.route') is null then
        create table rowq_citus.route (queue_name text primary key);
        comment on table rowq_citus.route is
            'Empty: a queue lives on the node that has the shard of its name. Never move a shard '
            'that queues belong to.';
        perform create_distributed_table(
            'rowq_citus.route', 'queue_name', colocate_with => 'none', shard_count => 64);
    end if;

    -- Only a call that is forced to be carried is so inside of functions and transactions.
    perform create_distributed_function(
        p.oid::regprocedure, p.proargnames[1], colocate_with => 'rowq_citus.route',
        force_delegation => true)
    from pg_proc p
    where p.pronamespace = 'rowq_citus'::regnamespace
      and p.proname = any (v_carriers);
end;
$$;
