-- Messages that wait for a worker, and nothing else. The clustered key is the dequeue order; there
-- is no second index, so no reader can meet a consumer in the opposite order. lane is priority * 2,
-- plus 1 for the tail: messages given back go to the front lane. seq is the moment of entry, in
-- microseconds since 1970 UTC, plus the place in its batch: no number generator is shared by
-- producers, and what commits late is at most as old as its transaction; message_id breaks ties.
-- Rows are locked one by one: a page lock or an escalated one would be waited for, not passed over.
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
