function internal_next_tick(p_schedule in t_schedule, p_after in timestamp)
return timestamp
is
-- routine   internal_next_tick
-- purpose   Return the first tick of a schedule after a moment; null where there is none.
-- promise   P31
-- errors    RQ711
    -- The last microsecond of the year 9999, which is the last year that the server has.
    c_most constant number := 253402300799999999;
    v_after  timestamp(6) := p_after;
    v_start  number;
    v_step   number;
    v_passed number;
    v_next   number;
    v_tick   timestamp(6);
begin
    if v_after < p_schedule.starts_at then
        v_after := p_schedule.starts_at - numtodsinterval(0.000001, 'second');
    end if;
    if p_schedule.cron is not null then
        v_tick := internal_next_cron(
            internal_parse_cron(p_schedule.cron), p_schedule.time_zone, v_after
        );
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        v_start := internal_microseconds(p_schedule.starts_at);
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := internal_microseconds(v_after) - v_start;
        v_next := v_start + (floor(v_passed / v_step) + 1) * v_step;
        if v_next <= c_most then
            v_tick := internal_from_microseconds(v_next);
        end if;
    end if;
    return case when v_tick > p_schedule.ends_at then null else v_tick end;
end internal_next_tick;
