-- A row is a finished message. There is one partition a day (archive_YYYYMMDD, UTC), which is
-- dropped when no queue needs it.
create table if not exists rowq.archive (
    part_id      integer not null,
    lane         smallint not null,
    attempt      smallint not null,
    message_id   bigint not null,
    enqueued_at  timestamp with time zone not null,
    finished_at  timestamp with time zone not null,
    state        text not null,
    message_type text,
    dedup_key    text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    group_key    text,
    constraint archive_pk primary key (part_id, finished_at, message_id)
) partition by range (finished_at);

create index if not exists archive_message_ix on rowq.archive (part_id, message_id);
