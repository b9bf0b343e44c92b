-- A row is a finished message. There is one partition a day (UTC), which is truncated when no queue
-- needs it. The partition function begins without a day: one partition takes everything, and
-- maintain splits days off it before they hold anything. Both indexes are partitioned alike,
-- because truncating a partition requires it.
set quoted_identifier on;
set ansi_nulls on;
go
if not exists (select 1 from sys.partition_functions f where f.name = N'rowq_day')
create partition function rowq_day (datetime2(6)) as range right for values ();
go
if not exists (select 1 from sys.partition_schemes s where s.name = N'rowq_day')
create partition scheme rowq_day as partition rowq_day all to ([PRIMARY]);
go
if object_id(N'rowq.archived') is null
create table rowq.archived (
    part_id      int not null,
    finished_at  datetime2(6) not null,
    message_id   bigint not null,
    lane         smallint not null,
    attempt      smallint not null,
    enqueued_at  datetime2(6) not null,
    state        nvarchar(20) collate Latin1_General_100_BIN2 not null,
    message_type nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers      nvarchar(max) collate Latin1_General_100_BIN2 null,
    body         nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary  varbinary(max) null,
    group_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint archived_pk primary key clustered (part_id, finished_at, message_id)
        with (ignore_dup_key = on, data_compression = page) on rowq_day (finished_at)
) on rowq_day (finished_at);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.archived')
      and i.name = N'archived_message_ix'
)
create nonclustered index archived_message_ix on rowq.archived (part_id, message_id)
    with (data_compression = page) on rowq_day (finished_at);
go
alter table rowq.archived set (lock_escalation = auto);
go
