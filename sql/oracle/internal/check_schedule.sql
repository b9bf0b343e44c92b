procedure internal_check_schedule(p_schedule in t_schedule, p_queue in t_queue)
is
-- routine   internal_check_schedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come.
-- promise   P15
-- errors    RQ711
    c_first constant timestamp(6) := timestamp '2000-01-01 00:00:00';
    c_last  constant timestamp(6) := timestamp '2100-01-01 00:00:00';
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_fault varchar2(32767);
    v_cuts  t_numbers;
begin
    internal_check_name('schedule_name', p_schedule.schedule_name);
    v_fault := case
        when p_schedule.cron is null and p_schedule.interval_seconds is null
             or p_schedule.cron is not null and p_schedule.interval_seconds is not null
            then 'a schedule has either cron or interval_seconds'
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        when p_schedule.missed is null
             or utl_raw.cast_to_raw(p_schedule.missed) not in (
                 utl_raw.cast_to_raw('skip'), utl_raw.cast_to_raw('once'),
                 utl_raw.cast_to_raw('all')
             )
            then 'missed must be skip, once or all, got '
                || coalesce(substr(p_schedule.missed, 1, 100), 'null')
        when p_schedule.overlap not in (0, 1)
            then 'overlap must be 0 or 1'
        when p_schedule.is_paused not in (0, 1)
            then 'is_paused must be 0 or 1'
        when p_schedule.starts_at not between c_first and c_last
             or p_schedule.ends_at not between c_first and c_last
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    if v_fault is null then
        internal_json_fault(
            'headers', p_schedule.headers, 'object', 20, 65536, v_cuts, v_fault
        );
    end if;
    if v_fault is null then
        v_fault := coalesce(
            internal_message_fault(
                p_schedule.body, p_schedule.body_binary, p_schedule.message_type,
                internal_tick_headers(p_schedule, v_now), p_schedule.priority, null, null, null,
                p_schedule.max_attempts, p_schedule.group_key, null, null
            ),
            internal_body_fault(
                p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
            )
        );
    end if;
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    internal_check_range('interval_seconds', p_schedule.interval_seconds, 1, 315360000);
    internal_check_time_zone(p_schedule.time_zone);
    if internal_next_tick(p_schedule, v_now) is null then
        internal_refuse('the schedule has no tick within ten years or before ends_at');
    end if;
end internal_check_schedule;
