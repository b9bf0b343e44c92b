-- A row is one successful dequeue: the messages of the batch as parallel arrays under one lease.
-- errors is null when no message of the batch has failed before. A heartbeat updates lease_until in
-- place, because lease_until is in no index and fillfactor leaves it room. cancel_ids is null but
-- where messages were cancelled while the worker had them.
create table if not exists rowq.claim (
    part_id     integer not null,
    claim_id    bigint not null default nextval('rowq.claim_seq'),
    lease_until timestamp with time zone not null,
    message_ids bigint[] not null,
    lanes       smallint[] not null,
    attempts    smallint[] not null,
    errors      text[],
    worker_name text,
    cancel_ids  bigint[],
    progress    text,
    leased_at   timestamp with time zone not null default clock_timestamp(),
    constraint claim_pk primary key (part_id, claim_id)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
