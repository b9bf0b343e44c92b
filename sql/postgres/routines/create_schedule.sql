create or replace function rowq.create_schedule(
    p_queue_name       text,
    p_schedule_name    text,
    p_cron             text default null,
    p_interval_seconds double precision default null,
    p_time_zone        text default 'UTC',
    p_body             text default null,
    p_body_binary      bytea default null,
    p_message_type     text default null,
    p_headers          jsonb default null,
    p_priority         integer default 5,
    p_max_attempts     integer default null,
    p_group_key        text default null,
    p_missed           text default 'once',
    p_overlap          boolean default true,
    p_starts_at        timestamp with time zone default null,
    p_ends_at          timestamp with time zone default null,
    p_counts_from      text default 'start'
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
-- routine   create_schedule
-- version   1
-- purpose   Create a schedule that enqueues a message by cron or interval.
-- promise   P15 P30 P31 P48
-- locks     the queue row, shared; the new schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   time zone names without a slash, such as CET, are refused, except UTC
#variable_conflict use_column
declare
    v_schedule rowq.schedule;
    v_queue    rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_schedule.schedule_name := p_schedule_name;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.missed := p_missed;
    v_schedule.counts_from := p_counts_from;
    v_schedule.overlap := coalesce(p_overlap, true) and p_counts_from <> 'end';
    v_schedule.starts_at := coalesce(p_starts_at, clock_timestamp());
    v_schedule.ends_at := p_ends_at;
    v_schedule.message_type := p_message_type;
    v_schedule.headers := p_headers;
    v_schedule.group_key := p_group_key;
    v_schedule.body := p_body;
    v_schedule.body_binary := p_body_binary;
    perform rowq.internal_check_range('priority', p_priority, 0, 9);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 0, 10000);
    v_schedule.priority := p_priority;
    v_schedule.max_attempts := p_max_attempts;
    v_schedule.next_run_at := rowq.internal_check_schedule(v_schedule, v_queue);

    -- drop_queue now waits for the new row.
    v_schedule.queue_id := rowq.internal_lock_queue(p_queue_name);
    insert into rowq.schedule (
        queue_id, schedule_name, cron, interval_seconds, time_zone, missed, overlap, starts_at,
        ends_at, message_type, headers, priority, group_key, max_attempts, body, body_binary,
        next_run_at, counts_from
    )
    values (
        v_schedule.queue_id, v_schedule.schedule_name, v_schedule.cron,
        v_schedule.interval_seconds, v_schedule.time_zone, v_schedule.missed,
        v_schedule.overlap, v_schedule.starts_at, v_schedule.ends_at,
        v_schedule.message_type, v_schedule.headers, v_schedule.priority,
        v_schedule.group_key, v_schedule.max_attempts, v_schedule.body,
        v_schedule.body_binary, v_schedule.next_run_at, v_schedule.counts_from
    )
    on conflict do nothing;
    outcome := case when found then 'created' else 'exists' end;
    schedule_name := p_schedule_name;
    next_run_at := v_schedule.next_run_at;
    if outcome = 'exists' then
        -- Null if the schedule has just been dropped.
        next_run_at := (
            select s.next_run_at
            from rowq.schedule s
            where s.queue_id = v_schedule.queue_id
              and s.schedule_name = p_schedule_name
        );
    end if;
    return next;
end;
$$;
