-- A row is a message that waits for a worker. The clustered key is the dequeue order. There is no
-- second index, so no reader can meet a consumer that locks in the opposite order. lane is priority
-- * 2, plus 1 for the tail: a message that is released or reaped goes to the front lane. seq is the
-- moment of entry, in microseconds since 1970 UTC: no sequence orders the producers, and a row that
-- is committed late is at most as old as its transaction. message_id decides between equal ones, of
-- which there are many: the clock of a server moves in steps of up to 16 milliseconds. Rows are
-- locked one by one, because a reader would wait for a page lock or an escalated one instead of
-- passing over it.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.ready') is null
create table rowq.ready (
    part_id    int not null,
    lane       smallint not null,
    seq        bigint not null,
    message_id bigint not null,
    attempt    smallint not null constraint ready_attempt_df default 0,
    constraint ready_pk primary key clustered (part_id, lane, seq, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.ready set (lock_escalation = disable);
go
