-- This script installs rowq on SQL Server and Azure SQL as "rowq migrate" does, and needs sqlcmd
-- alone. Run it in this folder, in the database that rowq is to live in: sqlcmd -b -d database -i
-- install.sql. It may run again where it has run. It is one transaction: all of it or nothing.
-- Where an earlier release is installed, run the scripts of migrations/sqlserver instead. Each file
-- says "set quoted_identifier on", because sqlcmd begins with off and a procedure keeps the setting
-- that it was created with. Procedures find each other when they are called, so their order does
-- not matter.
:on error exit
set implicit_transactions off;
go
:r ../../migrations/sqlserver/preflight.sql
go
begin transaction;
go
:r ../../migrations/sqlserver/bookkeeping.sql
-- checks: generated from the migrations by make generate
if exists (
    select 1
    from rowq.migration m
    where m.migration_id not in (N'ms-0001-first-release')
)
begin
    throw 52804, N'RQ804 schema_newer: this database was upgraded by a newer rowq', 1;
end;
go
-- end of checks
:r tables/schema.sql
:r tables/types.sql
:r tables/meta.sql
:r tables/queue.sql
:r tables/part.sql
:r tables/lane.sql
:r tables/message.sql
:r tables/ready.sql
:r tables/delayed.sql
:r tables/claim.sql
:r tables/leased.sql
:r tables/dead.sql
:r tables/dedup.sql
:r tables/message_group.sql
:r tables/grouped.sql
:r tables/recheck.sql
:r tables/blocked.sql
:r tables/successor.sql
:r tables/gate.sql
:r tables/started.sql
:r tables/expiry.sql
:r tables/result.sql
:r tables/history.sql
:r tables/schedule.sql
:r tables/time_zone.sql
:r tables/topic_binding.sql
:r tables/worker.sql
:r tables/finished.sql
:r tables/archived.sql
:r tables/sequential_keys.sql
-- routines: generated from contract.toml and the folder internal by make generate
:r internal/add_part.sql
:r internal/admit.sql
:r internal/archive.sql
:r internal/await_predecessor.sql
:r internal/block.sql
:r internal/block_batch.sql
:r internal/bound_queues.sql
:r internal/check_batch_size.sql
:r internal/check_bodies.sql
:r internal/check_body.sql
:r internal/check_given.sql
:r internal/check_headers.sql
:r internal/check_ids.sql
:r internal/check_message.sql
:r internal/check_name.sql
:r internal/check_range.sql
:r internal/check_results.sql
:r internal/check_schedule.sql
:r internal/check_settings.sql
:r internal/check_tick.sql
:r internal/check_time_zone.sql
:r internal/check_topics.sql
:r internal/cut_ties.sql
:r internal/delete_claim.sql
:r internal/delete_empty_claim.sql
:r internal/delete_queue.sql
:r internal/dequeue.sql
:r internal/drop_days.sql
:r internal/end_cancelled.sql
:r internal/end_held.sql
:r internal/enqueue_batch.sql
:r internal/enter_group.sql
:r internal/enter_queue.sql
:r internal/expire.sql
:r internal/finish.sql
:r internal/first_key.sql
:r internal/follow_death.sql
:r internal/follow_deaths.sql
:r internal/free_successors.sql
:r internal/from_microseconds.sql
:r internal/give_up_messages.sql
:r internal/give_up_tick.sql
:r internal/health_sequences.sql
:r internal/health_server.sql
:r internal/hint_groups.sql
:r internal/is_blocked.sql
:r internal/join_groups.sql
:r internal/leave_groups.sql
:r internal/let_go.sql
:r internal/locate_messages.sql
:r internal/lock_claim.sql
:r internal/lock_gate.sql
:r internal/lock_part_exclusive.sql
:r internal/lock_part_shared.sql
:r internal/maintain.sql
:r internal/maintain_archive.sql
:r internal/maintain_delivery.sql
:r internal/maintain_kept.sql
:r internal/maintain_queue.sql
:r internal/moment_of_local.sql
:r internal/move_floor.sql
:r internal/next_cron.sql
:r internal/next_cron_local.sql
:r internal/next_message_id.sql
:r internal/next_tick.sql
:r internal/note_cancels.sql
:r internal/note_error.sql
:r internal/note_expiry.sql
:r internal/offset_change.sql
:r internal/open_days.sql
:r internal/open_lanes.sql
:r internal/parse_cron.sql
:r internal/parse_cron_field.sql
:r internal/parse_cron_value.sql
:r internal/pass_group.sql
:r internal/pause_before_retry.sql
:r internal/poll_result.sql
:r internal/pop_expired.sql
:r internal/pop_ready.sql
:r internal/promote.sql
:r internal/promote_grouped.sql
:r internal/purge_archive.sql
:r internal/purge_history.sql
:r internal/purge_results.sql
:r internal/purge_started.sql
:r internal/purge_step.sql
:r internal/push_dead.sql
:r internal/push_delayed.sql
:r internal/push_history.sql
:r internal/push_ready.sql
:r internal/push_result.sql
:r internal/read_result.sql
:r internal/reap.sql
:r internal/recheck.sql
:r internal/recheck_death.sql
:r internal/refuse.sql
:r internal/refuse_not_empty.sql
:r internal/refuse_predecessors.sql
:r internal/refuse_queue.sql
:r internal/require_queue.sql
:r internal/require_schedule.sql
:r internal/rescan_floors.sql
:r internal/reserve_dedup_key.sql
:r internal/room.sql
:r internal/run_due.sql
:r internal/run_schedules.sql
:r internal/send_tick.sql
:r internal/store.sql
:r internal/store_batch.sql
:r internal/tick_headers.sql
:r internal/topic_fault.sql
:r internal/trim_claim.sql
:r internal/try_enter_group.sql
:r internal/try_join_group.sql
:r internal/try_unblock.sql
:r internal/unblock.sql
:r internal/unknown_of.sql
:r internal/unplaced_of.sql
:r internal/widen_group.sql
:r internal/windows_zone.sql
:r internal/withdraw.sql
:r routines/create_queue.sql
:r routines/alter_queue.sql
:r routines/drop_queue.sql
:r routines/pause_queue.sql
:r routines/resume_queue.sql
:r routines/bind_topic.sql
:r routines/unbind_topic.sql
:r routines/purge_queue.sql
:r routines/enqueue.sql
:r routines/enqueue_batch.sql
:r routines/publish.sql
:r routines/publish_batch.sql
:r routines/dequeue_fast.sql
:r routines/dequeue_wait.sql
:r routines/peek.sql
:r routines/complete.sql
:r routines/retry_later.sql
:r routines/fail_now.sql
:r routines/release.sql
:r routines/extend_lease.sql
:r routines/cancel.sql
:r routines/cancel_many.sql
:r routines/reset.sql
:r routines/discard_dead.sql
:r routines/create_schedule.sql
:r routines/alter_schedule.sql
:r routines/drop_schedule.sql
:r routines/run_schedule.sql
:r routines/list_schedules.sql
:r routines/next_ticks.sql
:r routines/maintain.sql
:r routines/reap.sql
:r routines/promote.sql
:r routines/archive.sql
:r routines/purge_archive.sql
:r routines/report_worker.sql
:r routines/queue_stats.sql
:r routines/get_message.sql
:r routines/find_message.sql
:r routines/get_result.sql
:r routines/wait_for_result.sql
:r routines/get_history.sql
:r routines/list_dead.sql
:r routines/list_claims.sql
:r routines/list_workers.sql
:r routines/list_delayed.sql
:r routines/list_topics.sql
:r routines/health.sql
:r routines/version.sql
:r routines/care_for_indexes.sql
-- end of routines
-- rowq makes this script of contract.toml, and sqlcmd has it not: "rowq migrate" and the scripts
-- of a release describe what was made.
-- source comments.sql
-- bookkeeping: generated from the migrations by make generate
if not exists (
    select 1
    from rowq.migration m
    where m.migration_hash = N'e22a7daafffc6637612bf3ee6dc3531296b02340aac43b287a58577a4ebb0a67'
)
begin
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (
        N'e22a7daafffc6637612bf3ee6dc3531296b02340aac43b287a58577a4ebb0a67',
        N'ms-0001-first-release', sysutcdatetime()
    );

    insert into rowq.migration_log
        (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
    values (
        lower(convert(nvarchar(36), newid())),
        N'e22a7daafffc6637612bf3ee6dc3531296b02340aac43b287a58577a4ebb0a67',
        N'ms-0001-first-release', N'apply', original_login(), N'script', sysutcdatetime()
    );
end;

update m
set value = v.value,
    changed_at = sysutcdatetime()
from rowq.meta m
join (
    values (N'schema_version', N'1'), (N'rowq_version', N'0.1.0')
) v (name, value) on v.name collate Latin1_General_100_BIN2 = m.name
where m.value <> v.value collate Latin1_General_100_BIN2;

insert into rowq.meta (name, value, changed_at)
select v.name, v.value, sysutcdatetime()
from (
    values (N'schema_version', N'1'), (N'rowq_version', N'0.1.0')
) v (name, value)
where not exists (select 1 from rowq.meta m where m.name = v.name collate Latin1_General_100_BIN2);
go
-- end of bookkeeping
:r grants.sql
commit transaction;
exec sys.sp_releaseapplock
    @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
go
