-- A row is what the producer handed over. It is written once and deleted once; only a failure
-- updates last_error and due_at. enqueued_at finds a message that was never given back, because its
-- seq in ready is the same moment in microseconds. due_at is the last place that the message had in
-- delayed. A small body stays in the row; a longer one is a LOB that only the join after a dequeue
-- reads. The lengths here count UTF-16 units: they are twice the characters that are allowed, so
-- that characters outside the basic plane fit, which take two units.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.message') is null
create table rowq.message (
    part_id      int not null,
    message_id   bigint not null,
    max_attempts smallint null,
    enqueued_at  datetime2(6) not null,
    due_at       datetime2(6) null,
    expires_at   datetime2(6) null,
    message_type nvarchar(400) collate Latin1_General_100_BIN2 null,
    dedup_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    headers      nvarchar(max) collate Latin1_General_100_BIN2 null,
    body         nvarchar(max) collate Latin1_General_100_BIN2 null,
    body_binary  varbinary(max) null,
    last_error   nvarchar(4000) collate Latin1_General_100_BIN2 null,
    group_key    nvarchar(400) collate Latin1_General_100_BIN2 null,
    constraint message_pk primary key clustered (part_id, message_id)
        with (statistics_norecompute = on)
);
go
alter table rowq.message set (lock_escalation = disable);
go
