-- This is the list of what is rowq on MariaDB and MySQL, in the order of installation. "sh
-- install.sh" prints it with the files in their places: the client's own "source" goes on after an
-- error. Where an earlier release is installed, run migrations/mysql/scripts instead.
-- Procedures find each other when they are called, so their order does not matter.
-- source ../../migrations/mysql/scripts/preflight.sql
-- source ../../migrations/mysql/scripts/bookkeeping.sql
-- source ../../migrations/mysql/scripts/lock.sql
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
-- source ../../migrations/mysql/scripts/owner.sql
-- source tables.sql
-- routines: generated from contract.toml and the folder internal by make generate
-- source internal/arguments.sql
-- source internal/text.sql
-- source internal/transactions.sql
-- source internal/queues.sql
-- source internal/store.sql
-- source internal/topics.sql
-- source internal/groups.sql
-- source internal/predecessors.sql
-- source internal/floors.sql
-- source internal/dequeue.sql
-- source internal/finish.sql
-- source internal/cancel.sql
-- source internal/limits.sql
-- source internal/schedules.sql
-- source internal/results.sql
-- source internal/history.sql
-- source internal/archive.sql
-- source internal/maintain.sql
-- source internal/health.sql
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
-- source routines/complete_and_dequeue.sql
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
-- source routines/alter_message.sql
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
-- source routines/after_failover.sql
-- source routines/queue_stats.sql
-- source routines/get_message.sql
-- source routines/explain_message.sql
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
