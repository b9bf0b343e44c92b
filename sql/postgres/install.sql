-- This script installs rowq on PostgreSQL as "rowq migrate" does, and needs psql alone: psql -f
-- sql/postgres/install.sql. It may run again where it has run. It is one transaction: all of it or
-- nothing. Where an earlier release is installed, run migrations/postgres/scripts instead.
\set ON_ERROR_STOP on
\encoding UTF8
begin;
\ir ../../migrations/postgres/scripts/preflight.sql
\ir ../../migrations/postgres/scripts/trust.sql
\ir ../../migrations/postgres/scripts/lock.sql
\ir ../../migrations/postgres/scripts/bookkeeping.sql
-- checks: generated from the migrations by make generate
do $$
begin
    if exists (
        select 1
        from rowq.migration m
        where m.migration_id not in ('pg-0001-first-release')
    ) then
        raise exception 'RQ804 schema_newer: the database has a newer rowq'
            using errcode = 'RQ804';
    end if;
end;
$$;
-- end of checks
\ir tables.sql
-- routines: generated from contract.toml and the folder internal by make generate
\ir internal/arguments.sql
\ir internal/text.sql
\ir internal/transactions.sql
\ir internal/queues.sql
\ir internal/store.sql
\ir internal/topics.sql
\ir internal/groups.sql
\ir internal/predecessors.sql
\ir internal/floors.sql
\ir internal/dequeue.sql
\ir internal/finish.sql
\ir internal/cancel.sql
\ir internal/limits.sql
\ir internal/schedules.sql
\ir internal/results.sql
\ir internal/history.sql
\ir internal/archive.sql
\ir internal/maintain.sql
\ir internal/health.sql
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
\ir routines/complete_and_dequeue.sql
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
\ir routines/alter_message.sql
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
\ir routines/after_failover.sql
\ir routines/queue_stats.sql
\ir routines/get_message.sql
\ir routines/explain_message.sql
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
\ir routines/elect_leader.sql
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
