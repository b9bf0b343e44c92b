-- A row stands for one queue and never changes. A call that adds or moves messages holds a shared
-- lock on it to the end of its transaction, and drop_queue locks it exclusively. The row of table
-- queue is not used for this, so that pausing and altering a queue never wait for a producer. Row 0
-- stands for no queue: a call in the caller's transaction reads it first, and the lock that this
-- may leave (under REPEATABLE READ or SERIALIZABLE) is in nobody's way.
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
insert into rowq.part (part_id)
select 0
where not exists (select 1 from rowq.part p where p.part_id = 0);
go
