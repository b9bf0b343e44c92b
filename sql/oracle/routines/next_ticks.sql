procedure next_ticks(
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default 'UTC',
    p_after            in timestamp default null,
    p_max_ticks        in number default 5,
    p_rows             out sys_refcursor
)
is
-- routine   next_ticks
-- version   1
-- purpose   Compute the next run times of a schedule before it is created.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_schedule t_schedule;
    v_tick     timestamp(6) := coalesce(p_after, sys_extract_utc(systimestamp));
    v_ticks    rowq_moments := rowq_moments();
begin
    if p_cron is null and p_interval_seconds is null
       or p_cron is not null and p_interval_seconds is not null then
        internal_refuse('exactly one of cron and interval_seconds is required');
    end if;
    internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    internal_check_time_zone(p_time_zone);
    internal_check_whole('max_ticks', p_max_ticks, 1, 1000, p_is_required => true);
    if v_tick not between timestamp '2000-01-01 00:00:00' and timestamp '2100-01-01 00:00:00' then
        internal_refuse('after must be between the years 2000 and 2100');
    end if;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.starts_at := v_tick;
    for i in 1 .. p_max_ticks loop
        v_tick := internal_next_tick(v_schedule, v_tick);
        exit when v_tick is null;
        v_ticks.extend;
        v_ticks(v_ticks.last) := v_tick;
    end loop;

    open p_rows for
        select n.column_value as tick
        from table(v_ticks) n
        order by n.column_value;
end next_ticks;
