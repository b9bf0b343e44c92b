-- This script installs rowq on SQL Server and Azure SQL as "rowq migrate" does, and needs sqlcmd
-- alone. Run it in this folder, in the database that rowq is to live in: sqlcmd -b -d database -i
-- install.sql. It may run again where it has run. It is one transaction: all of it or nothing.
-- Where an earlier release is installed, run migrations/sqlserver/scripts instead. Each file
-- says "set quoted_identifier on", because sqlcmd begins with off and a procedure keeps the setting
-- that it was created with. Procedures find each other when they are called, so their order does
-- not matter.
:on error exit
set implicit_transactions off;
go
:r ../../migrations/sqlserver/scripts/preflight.sql
go
begin transaction;
go
:r ../../migrations/sqlserver/scripts/bookkeeping.sql
-- checks: generated from the migrations by make generate
if exists (
    select 1
    from rowq.migration m
    where m.migration_id not in (N'ms-0001-first-release')
)
begin
    throw 52804, N'RQ804 schema_newer: the database has a newer rowq', 1;
end;
go
-- end of checks
:r tables.sql
-- routines: generated from contract.toml and the folder internal by make generate
:r internal/arguments.sql
:r internal/text.sql
:r internal/transactions.sql
:r internal/queues.sql
:r internal/store.sql
:r internal/topics.sql
:r internal/groups.sql
:r internal/predecessors.sql
:r internal/floors.sql
:r internal/dequeue.sql
:r internal/finish.sql
:r internal/cancel.sql
:r internal/limits.sql
:r internal/schedules.sql
:r internal/results.sql
:r internal/history.sql
:r internal/archive.sql
:r internal/maintain.sql
:r internal/health.sql
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
:r routines/complete_and_dequeue.sql
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
:r routines/alter_message.sql
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
:r routines/after_failover.sql
:r routines/queue_stats.sql
:r routines/get_message.sql
:r routines/explain_message.sql
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
:r routines/rebuild_indexes.sql
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
