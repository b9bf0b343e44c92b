-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports. worker_id has no blanks, so that texts that are
-- equal have the same bytes.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.worker') is null
create table rowq.worker (
    part_id              int not null,
    worker_id            nvarchar(64) collate Latin1_General_100_BIN2 not null,
    worker_name          nvarchar(400) collate Latin1_General_100_BIN2 null,
    host_name            nvarchar(400) collate Latin1_General_100_BIN2 null,
    worker_version       nvarchar(400) collate Latin1_General_100_BIN2 null,
    threads              int not null,
    started_at           datetime2(6) not null,
    last_seen_at         datetime2(6) not null,
    completed            bigint not null,
    failed               bigint not null,
    completed_per_second float not null constraint worker_completed_per_second_df default 0,
    failed_per_second    float not null constraint worker_failed_per_second_df default 0,
    constraint worker_pk primary key clustered (part_id, worker_id)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.worker set (lock_escalation = disable);
go
