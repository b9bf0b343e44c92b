-- A row is a token that its last owner could not pass on or give back, because another transaction
-- held what it looked at, because its own was the caller's, or because the group rests. is_hint
-- says that there is no token yet: the group's limit was raised, and there may be one to take.
-- maintain looks at what is due, and so does a dequeue that finds nothing, in a transaction of its
-- own, once maintain has seen such a row (queue.has_recheck).
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.recheck') is null
create table rowq.recheck (
    part_id    int not null,
    due_at     datetime2(6) not null,
    recheck_id bigint identity (1, 1) not null,
    group_key  varbinary(802) not null,
    is_hint    bit not null constraint recheck_is_hint_df default 0,
    constraint recheck_pk primary key clustered (part_id, due_at, recheck_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.recheck set (lock_escalation = disable);
go
