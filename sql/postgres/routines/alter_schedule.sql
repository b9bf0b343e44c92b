create or replace function rowq.alter_schedule(
    p_queue_name       text,
    p_schedule_name    text,
    p_cron             text default null,
    p_interval_seconds double precision default null,
    p_time_zone        text default null,
    p_body             text default null,
    p_body_binary      bytea default null,
    p_message_type     text default null,
    p_headers          jsonb default null,
    p_priority         integer default null,
    p_max_attempts     integer default null,
    p_group_key        text default null,
    p_missed           text default null,
    p_overlap          boolean default null,
    p_starts_at        timestamp with time zone default null,
    p_ends_at          timestamp with time zone default null,
    p_is_paused        boolean default null,
    p_counts_from      text default null
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
-- routine   alter_schedule
-- version   1
-- purpose   Change, pause or resume a schedule; null leaves a setting unchanged.
-- promise   P15 P31 P48
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   time zone names without a slash, such as CET, are refused, except UTC
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_schedule rowq.schedule;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_schedule := rowq.internal_require_schedule(v_queue.queue_id, p_schedule_name);
    perform rowq.internal_check_range('priority', p_priority, 0, 9);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 0, 10000);

    -- A new kind of time, or of body, replaces the other.
    if num_nonnulls(p_cron, p_interval_seconds) > 0 then
        v_schedule.cron := p_cron;
        v_schedule.interval_seconds := p_interval_seconds;
    end if;
    if num_nonnulls(p_body, p_body_binary) > 0 then
        v_schedule.body := p_body;
        v_schedule.body_binary := p_body_binary;
    end if;
    v_schedule.time_zone := coalesce(p_time_zone, v_schedule.time_zone);
    v_schedule.message_type := coalesce(p_message_type, v_schedule.message_type);
    v_schedule.headers := coalesce(p_headers, v_schedule.headers);
    v_schedule.priority := coalesce(p_priority, v_schedule.priority);
    v_schedule.max_attempts := coalesce(p_max_attempts, v_schedule.max_attempts);
    v_schedule.group_key := coalesce(p_group_key, v_schedule.group_key);
    v_schedule.missed := coalesce(p_missed, v_schedule.missed);
    v_schedule.is_running := coalesce(p_counts_from, v_schedule.counts_from) = 'end'
        and (v_schedule.is_running or v_schedule.counts_from = 'start');
    v_schedule.counts_from := coalesce(p_counts_from, v_schedule.counts_from);
    v_schedule.overlap := coalesce(p_overlap, v_schedule.overlap)
        and v_schedule.counts_from <> 'end';
    v_schedule.starts_at := coalesce(p_starts_at, v_schedule.starts_at);
    v_schedule.ends_at := coalesce(p_ends_at, v_schedule.ends_at);
    v_schedule.is_paused := coalesce(p_is_paused, v_schedule.is_paused);
    -- A schedule that can no longer run can still be paused.
    if p_is_paused is not true or num_nonnulls(
        p_cron, p_interval_seconds, p_time_zone, p_body, p_body_binary, p_message_type, p_headers,
        p_priority, p_max_attempts, p_group_key, p_missed, p_overlap, p_starts_at, p_ends_at,
        p_counts_from
    ) > 0 then
        v_schedule.next_run_at := rowq.internal_check_schedule(v_schedule, v_queue);
    end if;
    if v_schedule.is_running and v_schedule.starts_at <= clock_timestamp() then
        v_schedule.next_run_at := clock_timestamp() + interval '1 second';
    end if;
    if v_schedule.is_paused then
        v_schedule.next_run_at := null;
    end if;

    update rowq.schedule s
    set cron             = v_schedule.cron,
        interval_seconds = v_schedule.interval_seconds,
        time_zone        = v_schedule.time_zone,
        missed           = v_schedule.missed,
        overlap          = v_schedule.overlap,
        starts_at        = v_schedule.starts_at,
        ends_at          = v_schedule.ends_at,
        message_type     = v_schedule.message_type,
        headers          = v_schedule.headers,
        priority         = v_schedule.priority,
        group_key        = v_schedule.group_key,
        max_attempts     = v_schedule.max_attempts,
        body             = v_schedule.body,
        body_binary      = v_schedule.body_binary,
        is_paused        = v_schedule.is_paused,
        next_run_at      = v_schedule.next_run_at,
        last_error       = null,
        counts_from      = v_schedule.counts_from,
        is_running       = v_schedule.is_running
    where s.queue_id = v_schedule.queue_id
      and s.schedule_name = v_schedule.schedule_name;
    return query select p_schedule_name, 'altered', v_schedule.next_run_at;
end;
$$;
