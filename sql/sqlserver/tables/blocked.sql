-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor). rest_ids, a JSON array, are the others that it may
-- still have to wait for, newest first. group_key, the bytes of the key and a dot (see queue.sql),
-- is of a message that joins its group when it waits for none of them any more.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.blocked') is null
create table rowq.blocked (
    part_id        int not null,
    message_id     bigint not null,
    lane           smallint not null,
    predecessor_id bigint null,
    due_at         datetime2(6) null,
    on_dead        nvarchar(20) collate Latin1_General_100_BIN2 null,
    group_key      varbinary(802) null,
    rest_ids       nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint blocked_pk primary key clustered (part_id, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.blocked set (lock_escalation = disable);
go
