-- A row is the dedup key of an unfinished message, kept as its bytes and a dot (see queue.sql).
-- With ignore_dup_key, an insert of a key that exists inserts no row and raises no error that would
-- doom a transaction; where the other insert is not committed, this one waits for it first. The
-- option stands on the clustered key only: for a second index the engine would lock ranges of keys.
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
