-- A row is a batch of finished messages of a queue that keeps an archive. It stays until the
-- archive routine has moved the messages.
create table if not exists rowq.finished (
    part_id     integer not null,
    finish_id   bigint not null default nextval('rowq.claim_seq'),
    finished_at timestamp with time zone not null,
    message_ids bigint[] not null,
    lanes       smallint[] not null,
    attempts    smallint[] not null,
    state       text not null,
    constraint finished_pk primary key (part_id, finish_id),
    constraint finished_state_ck check (state in ('completed', 'cancelled', 'expired'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
