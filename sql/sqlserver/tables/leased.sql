-- A row is a message of a claim, and the clustered key is the order of delivery. dequeue fills the
-- table with "output into" from the rows that it deletes in ready, which come in this very order,
-- and reads it without a sort. "output into" requires that the table has no trigger, foreign key or
-- check. is_cancelled is 1 for a message that was cancelled while the worker had it, else null.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.leased') is null
create table rowq.leased (
    part_id      int not null,
    claim_id     bigint not null,
    lane         smallint not null,
    seq          bigint not null,
    message_id   bigint not null,
    attempt      smallint not null,
    is_cancelled bit null,
    constraint leased_pk primary key clustered (part_id, claim_id, lane, seq, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.leased set (lock_escalation = disable);
go
