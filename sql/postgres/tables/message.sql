-- A row is what the producer handed over. It is written once and deleted once, except that the
-- first message that waits for it sets has_successors.
create table if not exists rowq.message (
    part_id        integer not null,
    max_attempts   smallint,
    message_id     bigint not null default nextval('rowq.message_seq'),
    enqueued_at    timestamp with time zone not null,
    message_type   text,
    dedup_key      text,
    group_key      text,
    headers        jsonb,
    body           text,
    body_binary    bytea,
    has_successors boolean,
    expires_at     timestamp with time zone,
    constraint message_pk primary key (part_id, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off,
    toast.autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_cost_delay = 0,
    toast.vacuum_truncate = off
);
