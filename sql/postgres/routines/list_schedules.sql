create or replace function rowq.list_schedules(p_queue_name text default null)
returns table (
    queue_name       text,
    schedule_name    text,
    cron             text,
    interval_seconds double precision,
    time_zone        text,
    is_paused        boolean,
    next_run_at      timestamp with time zone,
    last_run_at      timestamp with time zone,
    last_message_id  bigint,
    last_error       text,
    missed           text,
    overlap          boolean,
    starts_at        timestamp with time zone,
    ends_at          timestamp with time zone,
    message_type     text,
    priority         integer,
    max_attempts     integer,
    group_key        text,
    counts_from      text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_schedules
-- version   1
-- purpose   List the schedules of one queue or all, without bodies and headers.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
#variable_conflict use_column
begin
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;
    return query
    select q.queue_name, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.is_paused,
           s.next_run_at, s.last_run_at, s.last_message_id, s.last_error, s.missed, s.overlap,
           s.starts_at, s.ends_at, s.message_type, s.priority::integer, s.max_attempts::integer,
           s.group_key, s.counts_from
    from rowq.queue q
    join rowq.schedule s on s.queue_id = q.queue_id
    where q.queue_name = p_queue_name or p_queue_name is null
    order by q.queue_name collate "C", s.schedule_name collate "C";
end;
$$;
