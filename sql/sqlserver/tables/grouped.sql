-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. The clustered key is the order in which a group goes on. group_key is the bytes of the
-- key and a dot (see queue.sql). message_group.sql says which lock goes before a change here.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.grouped') is null
create table rowq.grouped (
    part_id    int not null,
    group_key  varbinary(802) not null,
    message_id bigint not null,
    lane       smallint not null,
    constraint grouped_pk primary key clustered (part_id, group_key, message_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.grouped set (lock_escalation = disable);
go
