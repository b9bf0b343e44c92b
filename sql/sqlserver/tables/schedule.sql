-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. schedule_key is
-- what is compared: the bytes of the name and a dot, as in table queue. A second session that
-- creates the same schedule waits for the first and then adds no row (ignore_dup_key): a look with
-- holdlock would lock the schedule beside it as well. There are no page locks, and locks do not
-- escalate, so that maintain passes over single rows. The lengths count UTF-16 units.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.schedule') is null
create table rowq.schedule (
    part_id          int not null,
    schedule_key     varbinary(402) not null,
    schedule_name    nvarchar(200) collate Latin1_General_100_BIN2 not null,
    cron             nvarchar(200) collate Latin1_General_100_BIN2 null,
    interval_seconds float null,
    time_zone        nvarchar(128) collate Latin1_General_100_BIN2 not null,
    missed           nvarchar(20) collate Latin1_General_100_BIN2 not null,
    overlap          bit not null,
    starts_at        datetime2(6) not null,
    ends_at          datetime2(6) null,
    message_type     nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers          nvarchar(max) collate Latin1_General_100_BIN2 null,
    priority         smallint not null,
    group_key        nvarchar(400) collate Latin1_General_100_BIN2 null,
    max_attempts     smallint null,
    body             nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary      varbinary(max) null,
    is_paused        bit not null constraint schedule_is_paused_df default 0,
    next_run_at      datetime2(6) null,
    last_run_at      datetime2(6) null,
    last_message_id  bigint null,
    last_error       nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint schedule_pk primary key clustered (part_id, schedule_key)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on),
    constraint schedule_cron_ck check (
        cron is null and interval_seconds is not null
        or cron is not null and interval_seconds is null
    ),
    constraint schedule_missed_ck check (missed in (N'skip', N'once', N'all'))
);
go
alter table rowq.schedule set (lock_escalation = disable);
go
