-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready at a new place or delays it
-- anew: maintain can forget a row whose message it does not find. Of two rows of a message the
-- newer one counts: expiry_id is of the sequence of messages, and of who adds a message it is the
-- message's own. An identity would change @@identity for a caller who has just inserted something.
-- A row stays until its moment, also where the message has ended before. So that is no later than a
-- day, and maintain puts it off for another day until the message expires.
set quoted_identifier on;
set ansi_nulls on;
go
if object_id(N'rowq.expiry') is null
create table rowq.expiry (
    part_id    int not null,
    expires_at datetime2(6) not null,
    expiry_id  bigint not null,
    message_id bigint not null,
    lane       smallint null,
    seq        bigint null,
    constraint expiry_pk primary key clustered (part_id, expires_at, expiry_id)
        with (allow_page_locks = off, statistics_norecompute = on)
);
go
alter table rowq.expiry set (lock_escalation = disable);
go
