-- A row is a message that failed for good. It stays until it is reset, cancelled or purged.
create table if not exists rowq.dead (
    part_id    integer not null,
    lane       smallint not null,
    attempt    smallint not null,
    message_id bigint not null,
    died_at    timestamp with time zone not null,
    last_error text,
    constraint dead_pk primary key (part_id, message_id)
);
