-- A row is a message that failed for good. It stays until it is reset, cancelled or purged.
-- holds_group is true where it has kept the token of its group, and else null.
create table if not exists rowq.dead (
    part_id     integer not null,
    lane        smallint not null,
    attempt     smallint not null,
    message_id  bigint not null,
    died_at     timestamp with time zone not null,
    last_error  text,
    holds_group boolean,
    constraint dead_pk primary key (part_id, message_id)
);
