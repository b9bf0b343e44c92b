-- This is the list of what is rowq on MariaDB and MySQL, in the order of installation. "sh
-- install.sh" prints it with the files in their places: the client's own "source" goes on after an
-- error. Where an earlier release is installed, run the scripts of migrations/mysql instead.
-- Procedures find each other when they are called, so their order does not matter.
-- source ../../migrations/mysql/preflight.sql
-- source ../../migrations/mysql/bookkeeping.sql
-- source ../../migrations/mysql/lock.sql
-- checks: generated from the migrations by make generate
set @rowq_fault = null;
select if(count(*) > 0, 'RQ804 schema_newer', null) into @rowq_fault
from rowq.migration m
where m.migration_id not in ('my-0001-first-release');
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
-- end of checks
-- source ../../migrations/mysql/owner.sql
-- source tables/database.sql
-- source tables/meta.sql
-- source tables/queue.sql
-- source tables/part.sql
-- source tables/lane.sql
-- source tables/gate.sql
-- source tables/message.sql
-- source tables/ready.sql
-- source tables/delayed.sql
-- source tables/claim.sql
-- source tables/dead.sql
-- source tables/dedup.sql
-- source tables/grouped.sql
-- source tables/message_group.sql
-- source tables/blocked.sql
-- source tables/successor.sql
-- source tables/recheck.sql
-- source tables/started.sql
-- source tables/expiry.sql
-- source tables/result.sql
-- source tables/history.sql
-- source tables/finished.sql
-- source tables/archive.sql
-- source tables/schedule.sql
-- source tables/topic_binding.sql
-- source tables/worker.sql
-- routines: generated from contract.toml and the folder internal by make generate
-- source internal/add_part.sql
-- source internal/admit.sql
-- source internal/archive.sql
-- source internal/as_front.sql
-- source internal/await_predecessor.sql
-- source internal/back_off.sql
-- source internal/batch_predecessors.sql
-- source internal/begin_work.sql
-- source internal/block.sql
-- source internal/body_fault.sql
-- source internal/bound_gap.sql
-- source internal/bound_queues.sql
-- source internal/check_batch_size.sql
-- source internal/check_ids.sql
-- source internal/check_name.sql
-- source internal/check_range.sql
-- source internal/check_results.sql
-- source internal/check_schedule.sql
-- source internal/check_settings.sql
-- source internal/check_text.sql
-- source internal/check_time_zone.sql
-- source internal/check_unbound.sql
-- source internal/claims_of.sql
-- source internal/close_fronts.sql
-- source internal/commit_work.sql
-- source internal/count_messages.sql
-- source internal/cut_slice.sql
-- source internal/cut_ties.sql
-- source internal/dedup_owner.sql
-- source internal/delete_messages.sql
-- source internal/delete_queue.sql
-- source internal/delete_ready.sql
-- source internal/dequeue.sql
-- source internal/drop_days.sql
-- source internal/end_awaited.sql
-- source internal/end_cancelled.sql
-- source internal/end_held.sql
-- source internal/end_tied.sql
-- source internal/enter_group.sql
-- source internal/expand_range.sql
-- source internal/expire.sql
-- source internal/find_outside_strings.sql
-- source internal/finish.sql
-- source internal/finished_of.sql
-- source internal/first_key.sql
-- source internal/follow_death.sql
-- source internal/follow_deaths.sql
-- source internal/free_dedup_keys.sql
-- source internal/free_successors.sql
-- source internal/has_late_claim.sql
-- source internal/health_numbers.sql
-- source internal/health_queue.sql
-- source internal/health_server.sql
-- source internal/hint_groups.sql
-- source internal/idle_parts.sql
-- source internal/is_id_list.sql
-- source internal/join_groups.sql
-- source internal/json_fault.sql
-- source internal/json_length.sql
-- source internal/leave_groups.sql
-- source internal/let_go.sql
-- source internal/locate_messages.sql
-- source internal/lock_dead.sql
-- source internal/lock_due.sql
-- source internal/lock_gate.sql
-- source internal/lock_part_shared.sql
-- source internal/lock_ready.sql
-- source internal/look_for_idle.sql
-- source internal/maintain_archive.sql
-- source internal/maintain_delivery.sql
-- source internal/maintain_kept.sql
-- source internal/maintain_queue.sql
-- source internal/message_fault.sql
-- source internal/messages_json.sql
-- source internal/moment_of_local.sql
-- source internal/move_floor.sql
-- source internal/move_safe_floor.sql
-- source internal/newest_numbers.sql
-- source internal/next_cron.sql
-- source internal/next_cron_local.sql
-- source internal/next_number.sql
-- source internal/next_numbers.sql
-- source internal/next_slice.sql
-- source internal/next_tick.sql
-- source internal/note_cancels.sql
-- source internal/note_error.sql
-- source internal/note_expiry.sql
-- source internal/note_fault.sql
-- source internal/note_start.sql
-- source internal/offset_change.sql
-- source internal/oldest_ready.sql
-- source internal/open_day.sql
-- source internal/open_days.sql
-- source internal/open_lane.sql
-- source internal/outcomes.sql
-- source internal/parse_cron.sql
-- source internal/parse_cron_field.sql
-- source internal/parse_cron_value.sql
-- source internal/parse_message.sql
-- source internal/parse_moment.sql
-- source internal/pass_group.sql
-- source internal/pick_messages.sql
-- source internal/pin_session.sql
-- source internal/poll_result.sql
-- source internal/pop_blocked.sql
-- source internal/pop_claimed.sql
-- source internal/pop_expired.sql
-- source internal/pop_grouped.sql
-- source internal/pop_ready.sql
-- source internal/pop_waiting.sql
-- source internal/promote.sql
-- source internal/promote_grouped.sql
-- source internal/purge_archive.sql
-- source internal/purge_blocked.sql
-- source internal/purge_grouped.sql
-- source internal/purge_history.sql
-- source internal/purge_ready.sql
-- source internal/purge_results.sql
-- source internal/purge_started.sql
-- source internal/purge_waiting.sql
-- source internal/push_claim.sql
-- source internal/push_dead.sql
-- source internal/push_delayed.sql
-- source internal/push_history.sql
-- source internal/push_ready.sql
-- source internal/push_result.sql
-- source internal/read_result.sql
-- source internal/read_ties.sql
-- source internal/reap.sql
-- source internal/recheck.sql
-- source internal/recheck_death.sql
-- source internal/recheck_later.sql
-- source internal/refuse.sql
-- source internal/refuse_claim.sql
-- source internal/refuse_not_empty.sql
-- source internal/refuse_queue.sql
-- source internal/rejoin_groups.sql
-- source internal/release_dedup_keys.sql
-- source internal/remove_queue.sql
-- source internal/require_queue.sql
-- source internal/require_schedule.sql
-- source internal/rescan_floors.sql
-- source internal/retake_dedup_keys.sql
-- source internal/return_ready.sql
-- source internal/roll_back.sql
-- source internal/room.sql
-- source internal/run_due.sql
-- source internal/run_schedules.sql
-- source internal/run_ticks.sql
-- source internal/send_tick.sql
-- source internal/shape_archive.sql
-- source internal/split_by_attempts.sql
-- source internal/store.sql
-- source internal/store_batch.sql
-- source internal/store_grouped.sql
-- source internal/store_plain.sql
-- source internal/store_published.sql
-- source internal/sweep_again.sql
-- source internal/tick_headers.sql
-- source internal/topic_fault.sql
-- source internal/trim_claim.sql
-- source internal/try_enter_group.sql
-- source internal/try_lock_messages.sql
-- source internal/try_unblock.sql
-- source internal/unblock.sql
-- source internal/unpin_session.sql
-- source internal/wait.sql
-- source internal/widen_group.sql
-- source internal/withdraw.sql
-- source routines/create_queue.sql
-- source routines/alter_queue.sql
-- source routines/drop_queue.sql
-- source routines/pause_queue.sql
-- source routines/resume_queue.sql
-- source routines/bind_topic.sql
-- source routines/unbind_topic.sql
-- source routines/purge_queue.sql
-- source routines/enqueue.sql
-- source routines/enqueue_batch.sql
-- source routines/publish.sql
-- source routines/publish_batch.sql
-- source routines/dequeue_fast.sql
-- source routines/dequeue_wait.sql
-- source routines/peek.sql
-- source routines/complete.sql
-- source routines/retry_later.sql
-- source routines/fail_now.sql
-- source routines/release.sql
-- source routines/extend_lease.sql
-- source routines/cancel.sql
-- source routines/cancel_many.sql
-- source routines/reset.sql
-- source routines/discard_dead.sql
-- source routines/create_schedule.sql
-- source routines/alter_schedule.sql
-- source routines/drop_schedule.sql
-- source routines/run_schedule.sql
-- source routines/list_schedules.sql
-- source routines/next_ticks.sql
-- source routines/maintain.sql
-- source routines/reap.sql
-- source routines/promote.sql
-- source routines/archive.sql
-- source routines/purge_archive.sql
-- source routines/report_worker.sql
-- source routines/queue_stats.sql
-- source routines/get_message.sql
-- source routines/find_message.sql
-- source routines/get_result.sql
-- source routines/wait_for_result.sql
-- source routines/get_history.sql
-- source routines/list_dead.sql
-- source routines/list_claims.sql
-- source routines/list_workers.sql
-- source routines/list_delayed.sql
-- source routines/list_topics.sql
-- source routines/health.sql
-- source routines/version.sql
-- source routines/put.sql
-- end of routines
-- bookkeeping: generated from the migrations by make generate
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    uuid(), 'a836885857a7fbc3cc49cd7e62b859b387ebb2a0a654265068b65639ca3e7207',
    'my-0001-first-release', 'apply', user(), 'script', utc_timestamp(6)
from (select 1 as one) x
where not exists (
    select 1
    from rowq.migration m
    where m.migration_hash = 'a836885857a7fbc3cc49cd7e62b859b387ebb2a0a654265068b65639ca3e7207'
);
insert ignore into rowq.migration (migration_hash, migration_id, applied_at_utc)
values (
    'a836885857a7fbc3cc49cd7e62b859b387ebb2a0a654265068b65639ca3e7207',
    'my-0001-first-release', utc_timestamp(6)
);

insert into rowq.meta (name, value, changed_at)
values
    ('schema_version', '1', utc_timestamp(6)),
    ('rowq_version', '0.1.0', utc_timestamp(6))
on duplicate key update value = values(value), changed_at = values(changed_at);
-- end of bookkeeping
-- source grants.sql
do release_lock(@rowq_lock);
