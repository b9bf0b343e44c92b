-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is in message.last_error. holds_group is 1 where it has kept the token of its group, and
-- else null.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.dead') is null
create table rowq.dead (
    part_id     int not null,
    message_id  bigint not null,
    lane        smallint not null,
    attempt     smallint not null,
    died_at     datetime2(6) not null,
    holds_group bit null,
    constraint dead_pk primary key clustered (part_id, message_id)
        with (statistics_norecompute = on)
);
go
alter table rowq.dead set (lock_escalation = disable);
go
