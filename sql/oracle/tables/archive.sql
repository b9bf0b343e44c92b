-- A row is a finished message, kept for the queue's archive_days. The table is a plain one, because
-- partitions are an option that has to be paid for, and only the DBA knows whether it is.
-- partition_archive.sql turns it into a table with a partition a day; the routines look which of
-- the two they find.
create table rowq_archive (
    part_id      number(10) not null,
    finished_at  timestamp(6) not null,
    message_id   number(19) not null,
    lane         number(2) not null,
    attempt      number(5) not null,
    enqueued_at  timestamp(6) not null,
    state        varchar2(20 char) not null,
    message_type varchar2(200 char),
    dedup_key    varchar2(200 char),
    headers      clob,
    body         clob,
    body_binary  blob,
    group_key    varchar2(200 char),
    constraint rowq_archive_pk primary key (part_id, finished_at, message_id)
)
segment creation immediate
lob (headers) store as securefile rowq_archive_headers (enable storage in row)
lob (body) store as securefile rowq_archive_body (enable storage in row)
lob (body_binary) store as securefile rowq_archive_binary (enable storage in row)
/
create index rowq_archive_message_ix on rowq_archive (part_id, message_id)
/
