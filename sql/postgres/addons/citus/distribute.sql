-- Tell Citus where calls go. Run it on the coordinator as a superuser, in one transaction, after
-- forward.sql on every node; route.sql on every node follows. Run it again after adding or removing
-- a node.
set local citus.enable_ddl_propagation = on;
set local citus.multi_shard_modify_mode to 'sequential';
set local citus.shard_replication_factor to 1;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- The table stays empty: only its hash of names is used. 64 shards suffice for 64 nodes and for
-- moving shards without queues to a new node. It is not colocated with other tables, so moving
-- those moves no queue.
do $$
declare
    v_forwarders constant text[] := array[
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

    -- Without force_delegation, calls in functions and transactions are not forwarded.
    perform create_distributed_function(
        p.oid::regprocedure, p.proargnames[1], colocate_with => 'rowq_citus.route',
        force_delegation => true)
    from pg_proc p
    where p.pronamespace = 'rowq_citus'::regnamespace
      and p.proname = any (v_forwarders);
end;
$$;
