-- Who may do what on a node of a cluster. This script ends each transaction that changes a node.
-- Nothing that default privileges give to somebody is left of them.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- A carrier that runs with the rights of rowq_citus is its own, and only rowq's owner may call it;
-- the others are the owner's, so that who acts as rowq_citus cannot change them. A wrapper has the
-- owner, the rights and the comment of its routine. Callers keep their rights on the routine, but
-- none on its schema, which rowq_citus and the owner may use.
do $$
declare
    v_carried  constant text[] := array[
        -- routines: generated from contract.toml by make generate
        'create_queue', 'alter_queue', 'drop_queue', 'pause_queue', 'resume_queue', 'bind_topic',
        'unbind_topic', 'purge_queue', 'enqueue', 'enqueue_batch', 'publish', 'publish_batch',
        'dequeue_fast', 'listen', 'unlisten', 'elect_keeper', 'peek', 'complete', 'retry_later',
        'fail_now', 'release', 'extend_lease', 'cancel', 'cancel_many', 'reset', 'discard_dead',
        'create_schedule', 'alter_schedule', 'drop_schedule', 'run_schedule', 'list_schedules',
        'maintain', 'reap', 'promote', 'archive', 'purge_archive', 'report_worker', 'queue_stats',
        'get_message', 'find_message', 'get_result', 'get_history', 'list_dead', 'list_claims',
        'list_workers', 'list_delayed', 'list_topics', 'health'
        -- end of routines
    ];
    v_carriers constant text[] := array[
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
    v_owner    constant text := (
        select quote_ident(r.rolname)
        from pg_namespace n
        join pg_roles r on r.oid = n.nspowner
        where n.nspname = 'rowq'
    );
    v_change   text;
begin
    for v_change in
        with object as (
            select
                'schema' as kind,
                quote_ident(n.nspname) as name,
                v_owner as owner,
                n.nspowner as owner_before,
                coalesce(n.nspacl, acldefault('n', n.nspowner)) as acl,
                null::aclitem[] as wanted,
                'usage' as right_of_citus,
                null as right_of_owner,
                null as said
            from pg_namespace n
            where n.nspname in ('rowq_citus', 'rowq_node')
            union all
            select
                'table',
                'rowq_citus.route',
                quote_ident(pg_get_userbyid(c.relowner)),
                c.relowner,
                coalesce(c.relacl, acldefault('r', c.relowner)),
                null,
                'select',
                'select',
                null
            from pg_class c
            where c.oid = to_regclass('rowq_citus.route')
            union all
            select
                'function',
                p.oid::regprocedure::text,
                case when p.prosecdef then 'rowq_citus' else v_owner end,
                p.proowner,
                coalesce(p.proacl, acldefault('f', p.proowner)),
                null,
                case when not p.prosecdef then 'execute' end,
                case when p.prosecdef then 'execute' end,
                null
            from pg_proc p
            where p.pronamespace = 'rowq_citus'::regnamespace
              and p.proname = any (v_carriers)
            union all
            -- A lock of maintain counts only if its session may call maintain, and on the node of a
            -- queue this is a session of rowq_citus.
            select
                'function',
                w.oid::regprocedure::text,
                v_owner,
                w.proowner,
                coalesce(w.proacl, acldefault('f', w.proowner)),
                coalesce(o.proacl, acldefault('f', o.proowner)),
                case when w.proname = 'maintain' then 'execute' end,
                null,
                obj_description(o.oid, 'pg_proc')
            from pg_proc o
            join pg_proc w
                on w.proname = o.proname
                and w.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', w.proname)
            where o.pronamespace = to_regnamespace('rowq_node')
              and w.pronamespace = 'rowq'::regnamespace
              -- Without aside.sql a routine has the rights of when calls were first carried, and
              -- its wrapper has got others since.
              and current_setting('rowq.is_behind', true) = 'on'
              and o.proname = any (v_carried)
        )
        select c.change
        from object o
        cross join lateral (
            select 1, format('alter %s %s owner to %s', o.kind, o.name, o.owner)
            union all
            select
                2,
                format('revoke all on %s %s from %s cascade', o.kind, o.name,
                    coalesce(quote_ident(r.rolname), 'public'))
            from aclexplode(o.acl) a
            left join pg_roles r on r.oid = a.grantee
            where a.grantee <> o.owner_before
              and quote_ident(r.rolname) is distinct from o.owner
            union all
            select
                3,
                format('grant execute on function %s to %s%s', o.name,
                    coalesce(quote_ident(r.rolname), 'public'),
                    case when a.is_grantable then ' with grant option' end)
            from aclexplode(o.wanted) a
            left join pg_roles r on r.oid = a.grantee
            where quote_ident(r.rolname) is distinct from o.owner
              and r.rolname is distinct from 'rowq_citus'
            union all
            select 3, format('grant %s on %s %s to rowq_citus', o.right_of_citus, o.kind, o.name)
            where o.right_of_citus is not null
            union all
            select 3, format('grant %s on %s %s to %s', o.right_of_owner, o.kind, o.name, v_owner)
            where o.right_of_owner is not null
            union all
            select 4, format('comment on function %s is %L', o.name, o.said)
            where o.said is not null
        ) c (place, change)
        order by c.place
    loop
        execute v_change;
    end loop;

    for v_change in
        select format('grant execute on function %s to rowq_citus', o.oid::regprocedure)
        from pg_proc o
        where o.pronamespace = to_regnamespace('rowq_node')
          and o.proname = any (v_carried)
    loop
        execute v_change;
    end loop;
    execute format('grant connect on database %I to rowq_citus', current_database());
end;
$$;
