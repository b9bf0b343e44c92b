-- A row is one successful dequeue: the lease of a whole batch, whose messages are in leased. A
-- heartbeat changes only lease_until and progress, which are in no index. progress is null until a
-- heartbeat says it. has_cancels is 1 once messages of the batch were cancelled while the worker
-- had them, and null before. Whoever changes the batch, or what leased says of it, has this row
-- locked.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.claim') is null
create table rowq.claim (
    part_id     int not null,
    claim_id    bigint not null,
    leased_at   datetime2(6) not null,
    lease_until datetime2(6) not null,
    worker_name nvarchar(400) collate Latin1_General_100_BIN2 null,
    has_cancels bit null,
    progress    nvarchar(4000) collate Latin1_General_100_BIN2 null,
    constraint claim_pk primary key clustered (part_id, claim_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.claim set (lock_escalation = disable);
go
