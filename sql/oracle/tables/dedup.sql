-- A row is the dedup key of an unfinished message, kept as bytes, so that it is compared exactly
-- whatever NLS_COMP and NLS_SORT a session has. Only messages that have a key are here: in one
-- table with a nullable key, a unique index would reject a second message without one.
create table rowq_dedup (
    part_id    number(10) not null,
    dedup_key  raw(800) not null,
    message_id number(19) not null,
    constraint rowq_dedup_pk primary key (part_id, dedup_key)
)
organization index initrans 32
/
