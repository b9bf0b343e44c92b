-- One row a queue, never changed. A call that adds or moves messages holds a shared lock on it to
-- the end of its transaction, and drop_queue locks it exclusively. The row of table queue is not
-- used for this, so that pausing and altering never wait for a producer.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.part') is null
create table rowq.part (
    part_id int not null,
    constraint part_pk primary key clustered (part_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.part set (lock_escalation = disable);
go
