-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.started') is null
create table rowq.started (
    part_id    int not null,
    started_at datetime2(6) not null,
    claim_id   bigint not null,
    messages   int not null,
    constraint started_pk primary key clustered (part_id, started_at, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.started set (lock_escalation = disable);
go
