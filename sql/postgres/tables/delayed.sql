-- A row is a message that waits for its time, kept apart so that dequeue does not read it.
-- group_key is of one that joins its group when it is due; one that is retried has its token, and
-- none here.
create table if not exists rowq.delayed (
    part_id    integer not null,
    lane       smallint not null,
    attempt    smallint not null default 0,
    message_id bigint not null,
    due_at     timestamp with time zone not null,
    last_error text,
    group_key  text,
    constraint delayed_pk primary key (part_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

create index if not exists delayed_due_ix on rowq.delayed (part_id, due_at, message_id);
