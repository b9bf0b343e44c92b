-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. Whoever writes locks the row by the
-- clustered key first; the other index is for maintain and health, which read it alone and without
-- locks that last, so nobody locks the two in the opposite order. result is JSON of any kind.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.result') is null
create table rowq.result (
    part_id     int not null,
    message_id  bigint not null,
    finished_at datetime2(6) not null,
    state       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    result      nvarchar(max) collate Latin1_General_100_BIN2 null,
    last_error  nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint result_pk primary key clustered (part_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
if not exists (
    select 1
    from sys.indexes i
    where i.object_id = object_id(N'rowq.result')
      and i.name = N'result_finished_ix'
)
create nonclustered index result_finished_ix on rowq.result (part_id, finished_at)
    with (allow_page_locks = off, statistics_norecompute = on);
go
alter table rowq.result set (lock_escalation = disable);
go
