create or replace function rowq.internal_check_schedule(
    p_schedule rowq.schedule,
    p_queue    rowq.queue
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_check_schedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come; return that tick.
-- promise   P15
-- errors    RQ711
declare
    v_fault text;
    v_tick  timestamp with time zone;
begin
    perform rowq.internal_check_name('schedule_name', p_schedule.schedule_name);
    v_fault := case
        when num_nonnulls(p_schedule.cron, p_schedule.interval_seconds) <> 1
            then 'a schedule has either cron or interval_seconds'
        when p_schedule.missed is null or p_schedule.missed not in ('skip', 'once', 'all')
            then 'missed must be skip, once or all, got '
                || coalesce(left(p_schedule.missed, 100), 'null')
        when p_schedule.starts_at not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z'
             or p_schedule.ends_at not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z'
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    v_fault := coalesce(
        v_fault,
        rowq.internal_message_fault(
            p_schedule.body, p_schedule.body_binary, p_schedule.message_type,
            rowq.internal_tick_headers(p_schedule, clock_timestamp()), p_schedule.priority, null,
            null, null, p_schedule.max_attempts, p_schedule.group_key, null, null, null
        ),
        rowq.internal_body_fault(
            p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
        )
    );
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range(
        'interval_seconds', p_schedule.interval_seconds, 1, 315360000
    );
    perform rowq.internal_check_time_zone(p_schedule.time_zone);
    v_tick := rowq.internal_next_tick(p_schedule, clock_timestamp());
    if v_tick is null then
        raise exception
            'RQ711 invalid_argument: the schedule has no tick within ten years or before ends_at'
            using errcode = 'RQ711';
    end if;
    return v_tick;
end;
$$;
