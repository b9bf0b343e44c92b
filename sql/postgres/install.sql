-- This script installs rowq on PostgreSQL as "rowq migrate" does, and needs psql alone: psql -f
-- sql/postgres/install.sql. It may run again where it has run. It is one transaction: all of it or
-- nothing. Where an earlier release is installed, run the scripts of migrations/postgres instead.
\set ON_ERROR_STOP on
\encoding UTF8
begin;
\ir ../../migrations/postgres/preflight.sql
\ir ../../migrations/postgres/trust.sql
\ir ../../migrations/postgres/lock.sql
\ir ../../migrations/postgres/bookkeeping.sql
-- checks: generated from the migrations by make generate
do $$
begin
    if exists (
        select 1
        from rowq.migration m
        where m.migration_id not in ('pg-0001-first-release')
    ) then
        raise exception 'RQ804 schema_newer: this database was upgraded by a newer rowq'
            using errcode = 'RQ804';
    end if;
end;
$$;
-- end of checks
\ir tables/schema.sql
\ir tables/meta.sql
\ir tables/queue.sql
\ir tables/message.sql
\ir tables/ready.sql
\ir tables/delayed.sql
\ir tables/message_group.sql
\ir tables/grouped.sql
\ir tables/blocked.sql
\ir tables/successor.sql
\ir tables/recheck.sql
\ir tables/claim.sql
\ir tables/dead.sql
\ir tables/dedup.sql
\ir tables/expiry.sql
\ir tables/finished.sql
\ir tables/archive.sql
\ir tables/floor.sql
\ir tables/schedule.sql
\ir tables/gate.sql
\ir tables/started.sql
\ir tables/result.sql
\ir tables/history.sql
\ir tables/topic_binding.sql
\ir tables/worker.sql
-- routines: generated from contract.toml and the folder internal by make generate
\ir internal/admit.sql
\ir internal/archive.sql
\ir internal/await_predecessor.sql
\ir internal/block.sql
\ir internal/block_batch.sql
\ir internal/body_fault.sql
\ir internal/bound_queues.sql
\ir internal/channel.sql
\ir internal/check_batch_size.sql
\ir internal/check_name.sql
\ir internal/check_range.sql
\ir internal/check_results.sql
\ir internal/check_schedule.sql
\ir internal/check_settings.sql
\ir internal/check_time_zone.sql
\ir internal/count_ready.sql
\ir internal/cut_ties.sql
\ir internal/delete_messages.sql
\ir internal/end_cancelled.sql
\ir internal/end_tied.sql
\ir internal/enter_group.sql
\ir internal/expire.sql
\ir internal/finish.sql
\ir internal/first_key.sql
\ir internal/follow_deaths.sql
\ir internal/free_successors.sql
\ir internal/from_microseconds.sql
\ir internal/give_up_tick.sql
\ir internal/has_unended.sql
\ir internal/health_limits.sql
\ir internal/health_queues.sql
\ir internal/health_sequences.sql
\ir internal/health_server.sql
\ir internal/hint_groups.sql
\ir internal/idle_parts.sql
\ir internal/is_id_list.sql
\ir internal/is_listened.sql
\ir internal/is_past.sql
\ir internal/is_rescan_due.sql
\ir internal/join_groups.sql
\ir internal/json_fault.sql
\ir internal/leave_groups.sql
\ir internal/let_go.sql
\ir internal/locate_messages.sql
\ir internal/lock_dead.sql
\ir internal/lock_gate.sql
\ir internal/lock_queue.sql
\ir internal/maintain_queue.sql
\ir internal/maintained_parts.sql
\ir internal/message_fault.sql
\ir internal/moment_of_local.sql
\ir internal/move_floor.sql
\ir internal/newest_number.sql
\ir internal/next_cron.sql
\ir internal/next_cron_local.sql
\ir internal/next_tick.sql
\ir internal/note_cancels.sql
\ir internal/note_expiry.sql
\ir internal/note_fault.sql
\ir internal/note_start.sql
\ir internal/notify.sql
\ir internal/offset_change.sql
\ir internal/open_day.sql
\ir internal/open_lanes.sql
\ir internal/parse_cron.sql
\ir internal/parse_cron_field.sql
\ir internal/parse_messages.sql
\ir internal/parse_moment.sql
\ir internal/parse_predecessors.sql
\ir internal/pass_groups.sql
\ir internal/poll.sql
\ir internal/poll_result.sql
\ir internal/pop_claimed.sql
\ir internal/pop_expired.sql
\ir internal/pop_ready.sql
\ir internal/pop_waiting.sql
\ir internal/promote.sql
\ir internal/purge_archive.sql
\ir internal/purge_history.sql
\ir internal/purge_results.sql
\ir internal/purge_started.sql
\ir internal/push_dead.sql
\ir internal/push_delayed.sql
\ir internal/push_history.sql
\ir internal/push_ready.sql
\ir internal/push_result.sql
\ir internal/read_floor.sql
\ir internal/read_safe_floor.sql
\ir internal/read_ties.sql
\ir internal/reap.sql
\ir internal/recheck.sql
\ir internal/recheck_death.sql
\ir internal/recheck_later.sql
\ir internal/refuse_bad_value.sql
\ir internal/refuse_filled_queue.sql
\ir internal/refuse_predecessors.sql
\ir internal/refuse_queue.sql
\ir internal/require_autocommit.sql
\ir internal/require_part.sql
\ir internal/require_queue.sql
\ir internal/require_schedule.sql
\ir internal/reserve_dedup_keys.sql
\ir internal/room.sql
\ir internal/run_due.sql
\ir internal/run_schedules.sql
\ir internal/send_tick.sql
\ir internal/store_plain.sql
\ir internal/store_unkeyed.sql
\ir internal/take_topics.sql
\ir internal/tick_headers.sql
\ir internal/topic_fault.sql
\ir internal/try_enter_group.sql
\ir internal/unblock.sql
\ir internal/wait_until.sql
\ir internal/widen_group.sql
\ir internal/with_max_attempts.sql
\ir internal/withdraw.sql
\ir routines/create_queue.sql
\ir routines/alter_queue.sql
\ir routines/drop_queue.sql
\ir routines/pause_queue.sql
\ir routines/resume_queue.sql
\ir routines/bind_topic.sql
\ir routines/unbind_topic.sql
\ir routines/purge_queue.sql
\ir routines/enqueue.sql
\ir routines/enqueue_batch.sql
\ir routines/publish.sql
\ir routines/publish_batch.sql
\ir routines/dequeue_fast.sql
\ir routines/dequeue_wait.sql
\ir routines/peek.sql
\ir routines/complete.sql
\ir routines/retry_later.sql
\ir routines/fail_now.sql
\ir routines/release.sql
\ir routines/extend_lease.sql
\ir routines/cancel.sql
\ir routines/cancel_many.sql
\ir routines/reset.sql
\ir routines/discard_dead.sql
\ir routines/create_schedule.sql
\ir routines/alter_schedule.sql
\ir routines/drop_schedule.sql
\ir routines/run_schedule.sql
\ir routines/list_schedules.sql
\ir routines/next_ticks.sql
\ir routines/maintain.sql
\ir routines/reap.sql
\ir routines/promote.sql
\ir routines/archive.sql
\ir routines/purge_archive.sql
\ir routines/report_worker.sql
\ir routines/queue_stats.sql
\ir routines/get_message.sql
\ir routines/find_message.sql
\ir routines/get_result.sql
\ir routines/wait_for_result.sql
\ir routines/get_history.sql
\ir routines/list_dead.sql
\ir routines/list_claims.sql
\ir routines/list_workers.sql
\ir routines/list_delayed.sql
\ir routines/list_topics.sql
\ir routines/health.sql
\ir routines/version.sql
\ir routines/listen.sql
\ir routines/unlisten.sql
\ir routines/elect_keeper.sql
\ir overloads/enqueue_jsonb.sql
\ir overloads/enqueue_json.sql
-- end of routines
-- rowq makes this script of contract.toml, and psql has it not: "rowq migrate" and the scripts of
-- a release comment on what was made.
-- source comments.sql
-- bookkeeping: generated from the migrations by make generate
with installed as (
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (
        'c5a3e531e0aef22143bbae4752d26bd67b5d8f8225c6a259df7d1a79c68d15fb',
        'pg-0001-first-release',
        clock_timestamp() at time zone 'utc'
    )
    on conflict (migration_hash) do nothing
    returning migration_hash, migration_id, applied_at_utc
)
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    gen_random_uuid(), migration_hash, migration_id, 'apply', session_user, 'script', applied_at_utc
from installed;

    insert into rowq.meta (name, value)
    values ('schema_version', '1'), ('rowq_version', '0.1.0')
    on conflict (name) do update
    set value = excluded.value,
        changed_at = clock_timestamp()
    where rowq.meta.value <> excluded.value;
-- end of bookkeeping
\ir grants.sql
commit;
