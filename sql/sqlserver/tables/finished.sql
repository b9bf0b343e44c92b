-- A row is a finished message of a queue that keeps an archive. It stays until the archive routine
-- has moved it, oldest first.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.finished') is null
create table rowq.finished (
    part_id     int not null,
    finished_at datetime2(6) not null,
    message_id  bigint not null,
    lane        smallint not null,
    attempt     smallint not null,
    state       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    constraint finished_pk primary key clustered (part_id, finished_at, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.finished set (lock_escalation = disable);
go
