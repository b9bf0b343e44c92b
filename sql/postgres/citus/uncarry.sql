-- Carriers that nobody calls any more go: those of the release before, when every node has the
-- wrappers of this one, and all where no call is carried. This script runs on the coordinator
-- first, because Citus drops there for all nodes what it carries, and then on every other node, as
-- a superuser, after check.sql and in the same transaction.
--
-- The empty table rowq_citus.route stays: it says where queues are found when calls are carried
-- again.
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

do $$
declare
    v_carriers       constant text[] := array[
        -- carriers: generated from contract.toml by make generate
        'groups', 'is_here', 'nodes', 'require_arrival', 'require_caller', 'require_node',
        'require_own', 'at_create_queue_1', 'to_create_queue_1', 'at_alter_queue_1',
        'to_alter_queue_1', 'at_drop_queue_1', 'to_drop_queue_1', 'at_pause_queue_1',
        'to_pause_queue_1', 'at_resume_queue_1', 'to_resume_queue_1', 'at_bind_topic_1',
        'to_bind_topic_1', 'at_unbind_topic_1', 'to_unbind_topic_1', 'at_purge_queue_1',
        'to_purge_queue_1', 'at_enqueue_1', 'to_enqueue_1', 'at_enqueue_batch_1',
        'to_enqueue_batch_1', 'on_publish_1', 'each_publish_1', 'on_publish_batch_1',
        'each_publish_batch_1', 'at_dequeue_fast_1', 'to_dequeue_fast_1', 'at_listen_1',
        'to_listen_1', 'at_unlisten_1', 'to_unlisten_1', 'at_elect_keeper_1', 'to_elect_keeper_1',
        'at_peek_1', 'to_peek_1', 'at_complete_1', 'to_complete_1', 'at_retry_later_1',
        'to_retry_later_1', 'at_fail_now_1', 'to_fail_now_1', 'at_release_1', 'to_release_1',
        'at_extend_lease_1', 'to_extend_lease_1', 'at_cancel_1', 'to_cancel_1', 'at_cancel_many_1',
        'to_cancel_many_1', 'at_reset_1', 'to_reset_1', 'at_discard_dead_1', 'to_discard_dead_1',
        'at_create_schedule_1', 'to_create_schedule_1', 'at_alter_schedule_1',
        'to_alter_schedule_1', 'at_drop_schedule_1', 'to_drop_schedule_1', 'at_run_schedule_1',
        'to_run_schedule_1', 'at_list_schedules_1', 'to_list_schedules_1', 'on_list_schedules_1',
        'each_list_schedules_1', 'at_maintain_1', 'to_maintain_1', 'on_maintain_1',
        'each_maintain_1', 'at_reap_1', 'to_reap_1', 'at_promote_1', 'to_promote_1', 'at_archive_1',
        'to_archive_1', 'at_purge_archive_1', 'to_purge_archive_1', 'at_report_worker_1',
        'to_report_worker_1', 'at_queue_stats_1', 'to_queue_stats_1', 'on_queue_stats_1',
        'each_queue_stats_1', 'at_get_message_1', 'to_get_message_1', 'at_find_message_1',
        'to_find_message_1', 'at_get_result_1', 'to_get_result_1', 'at_get_history_1',
        'to_get_history_1', 'at_list_dead_1', 'to_list_dead_1', 'at_list_claims_1',
        'to_list_claims_1', 'on_list_claims_1', 'each_list_claims_1', 'at_list_workers_1',
        'to_list_workers_1', 'on_list_workers_1', 'each_list_workers_1', 'at_list_delayed_1',
        'to_list_delayed_1', 'at_list_topics_1', 'to_list_topics_1', 'on_list_topics_1',
        'each_list_topics_1', 'on_health_1', 'each_health_1'
        -- end of carriers
    ];
    v_owner          constant oid := (
        select n.nspowner from pg_namespace n where n.nspname = 'rowq'
    );
    v_is_carrying    constant boolean := to_regnamespace('rowq_node') is not null;
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
          and (not v_is_carrying or p.proname <> all (v_carriers))
    loop
        execute v_change;
    end loop;
    if v_is_carrying or to_regrole('rowq_citus') is null then
        return;
    end if;

    -- Another database of this server may carry calls still.
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
