-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased, and until its transaction ends. It never changes.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.gate') is null
create table rowq.gate (
    part_id int not null,
    constraint gate_pk primary key clustered (part_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.gate set (lock_escalation = disable);
go
