-- Keys of unfinished messages: their bytes and a dot, as in queue. A key that is there is
-- ignored, and counted as no row: the insert waits for an open one, and no error dooms anybody.
-- That is for the clustered key only: for a second index the engine would lock ranges of keys.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.dedup') is null
create table rowq.dedup (
    part_id    int not null,
    dedup_key  varbinary(802) not null,
    message_id bigint not null,
    constraint dedup_pk primary key clustered (part_id, dedup_key)
        with (ignore_dup_key = on, allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.dedup set (lock_escalation = disable);
go
