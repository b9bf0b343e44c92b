-- A row is a worker process that has reported. It is deleted when the worker ends; one that was
-- killed is deleted an hour after its last report, by the report of another worker of the queue.
-- The rates are those between the last two reports.
create table if not exists rowq.worker (
    part_id              integer not null,
    threads              integer not null,
    started_at           timestamp with time zone not null,
    last_seen_at         timestamp with time zone not null,
    completed            bigint not null,
    failed               bigint not null,
    completed_per_second double precision not null default 0,
    failed_per_second    double precision not null default 0,
    worker_id            text not null,
    worker_name          text,
    host_name            text,
    worker_version       text,
    constraint worker_pk primary key (part_id, worker_id)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
