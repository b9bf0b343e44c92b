-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, because its own was the caller's, or because there was too much of it. With a
-- group_key it is a token that its last owner could not pass on or give back, or whose group rests;
-- is_hint says that there is no token yet: the group's limit was raised, and there may be one to
-- take. With a message_id it is a blocked message that waits for nothing any more, perhaps. With a
-- predecessor_id it is a message that has ended, of which not all successors were freed; is_hint
-- says that it is dead. With the same id as both it is a message that has ended, and whose row
-- another transaction had locked. maintain looks at what is due, and so does a dequeue that finds
-- nothing, in a transaction of its own, once maintain has seen such a row (queue.has_recheck).
-- recheck_id is of the sequence of messages, because an identity would change @@identity for a
-- caller who has just inserted something.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.recheck') is null
create table rowq.recheck (
    part_id        int not null,
    due_at         datetime2(6) not null,
    recheck_id     bigint not null,
    message_id     bigint null,
    predecessor_id bigint null,
    group_key      varbinary(802) null,
    is_hint        bit not null constraint recheck_is_hint_df default 0,
    constraint recheck_pk primary key clustered (part_id, due_at, recheck_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.recheck set (lock_escalation = disable);
go
