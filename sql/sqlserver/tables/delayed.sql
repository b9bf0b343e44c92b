-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- clustered key is the order in which messages become due. message.due_at finds a message here, so
-- there is no second index. group_key, the bytes of the key and a dot (see queue.sql), is of one
-- that joins its group when it is due; one that is retried has its token, and none here.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.delayed') is null
create table rowq.delayed (
    part_id    int not null,
    due_at     datetime2(6) not null,
    message_id bigint not null,
    lane       smallint not null,
    attempt    smallint not null constraint delayed_attempt_df default 0,
    group_key  varbinary(802) null,
    constraint delayed_pk primary key clustered (part_id, due_at, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.delayed set (lock_escalation = disable);
go
