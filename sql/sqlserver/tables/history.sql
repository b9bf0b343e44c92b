-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day as in the archive, because a partition is added
-- or dropped under a lock on the whole table, for which every call that ends messages would wait.
-- Rows are only added and deleted, both by the clustered key; the other index is for get_history,
-- which passes over locked rows, so nobody waits for one who locks the two in the opposite order.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.history') is null
create table rowq.history (
    part_id     int not null,
    ended_at    datetime2(6) not null,
    message_id  bigint not null,
    claim_id    bigint not null,
    attempt     smallint not null,
    leased_at   datetime2(6) not null,
    outcome     nvarchar(20) collate Latin1_General_100_BIN2 not null,
    worker_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    error       nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint history_pk primary key clustered (part_id, ended_at, message_id, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.history')
      and i.name = N'history_message_ix'
)
create nonclustered index history_message_ix on rowq.history (part_id, message_id)
    with (allow_page_locks = off, statistics_norecompute = on);
go
alter table rowq.history set (lock_escalation = disable);
go
