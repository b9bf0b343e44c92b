-- Keys of unfinished messages: their bytes and one byte more, as in queue.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.dedup') is null
create table rowq.dedup (
    part_id    int not null,
    dedup_key  varbinary(801) not null,
    message_id bigint not null,
    constraint dedup_pk primary key clustered (part_id, dedup_key)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.dedup set (lock_escalation = disable);
go
