-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick.
create table if not exists rowq.schedule (
    part_id          integer not null,
    schedule_name    text not null,
    cron             text,
    interval_seconds double precision,
    time_zone        text not null,
    missed           text not null,
    overlap          boolean not null,
    starts_at        timestamp with time zone not null,
    ends_at          timestamp with time zone,
    message_type     text,
    headers          jsonb,
    priority         smallint not null,
    group_key        text,
    max_attempts     smallint,
    body             text,
    body_binary      bytea,
    is_paused        boolean not null default false,
    next_run_at      timestamp with time zone,
    last_run_at      timestamp with time zone,
    last_message_id  bigint,
    last_error       text,
    constraint schedule_pk primary key (part_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all'))
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    fillfactor = 50
);
