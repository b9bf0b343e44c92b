-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
create table if not exists rowq.started (
    part_id    integer not null,
    messages   integer not null,
    started_at timestamp with time zone not null,
    claim_id   bigint not null,
    constraint started_pk primary key (part_id, started_at, claim_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
