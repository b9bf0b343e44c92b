-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. There is no partition a day as in the archive, because a partition is
-- dropped under a lock on the whole table, for which every call that ends messages would wait.
create table if not exists rowq.history (
    part_id     integer not null,
    attempt     smallint not null,
    message_id  bigint not null,
    claim_id    bigint not null,
    leased_at   timestamp with time zone not null,
    ended_at    timestamp with time zone not null,
    outcome     text not null,
    worker_name text,
    error       text,
    constraint history_pk primary key (part_id, ended_at, message_id, claim_id),
    constraint history_outcome_ck check (
        outcome in ('completed', 'retrying', 'dead', 'released', 'lease_expired', 'cancelled')
    )
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index if not exists history_message_ix on rowq.history (part_id, message_id);
