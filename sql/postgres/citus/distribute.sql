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
        -- names: generated from contract.toml by make generate
        'at_create_queue_1', 'at_alter_queue_1', 'at_drop_queue_1', 'at_pause_queue_1',
        'at_resume_queue_1', 'at_bind_topic_1', 'at_unbind_topic_1', 'at_purge_queue_1',
        'at_enqueue_1', 'at_enqueue_batch_1', 'on_publish_1', 'on_publish_batch_1',
        'at_dequeue_fast_1', 'at_listen_1', 'at_unlisten_1', 'at_elect_keeper_1', 'at_peek_1',
        'at_complete_1', 'at_retry_later_1', 'at_fail_now_1', 'at_release_1', 'at_extend_lease_1',
        'at_cancel_1', 'at_cancel_many_1', 'at_reset_1', 'at_discard_dead_1',
        'at_create_schedule_1', 'at_alter_schedule_1', 'at_drop_schedule_1', 'at_run_schedule_1',
        'at_list_schedules_1', 'on_list_schedules_1', 'at_maintain_1', 'on_maintain_1', 'at_reap_1',
        'at_promote_1', 'at_archive_1', 'at_purge_archive_1', 'at_report_worker_1',
        'at_queue_stats_1', 'on_queue_stats_1', 'at_get_message_1', 'at_find_message_1',
        'at_get_result_1', 'at_get_history_1', 'at_list_dead_1', 'at_list_claims_1',
        'on_list_claims_1', 'at_list_workers_1', 'on_list_workers_1', 'at_list_delayed_1',
        'at_list_topics_1', 'on_list_topics_1', 'on_health_1'
        -- end of names
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
