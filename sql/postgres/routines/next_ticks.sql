create or replace function rowq.next_ticks(
    p_cron             text default null,
    p_interval_seconds double precision default null,
    p_time_zone        text default 'UTC',
    p_after            timestamp with time zone default null,
    p_max_ticks        integer default 5
)
returns table (tick timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
-- routine   next_ticks
-- version   1
-- purpose   Compute the next run times of a schedule before it is created.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   time zone names without a slash, such as CET, are refused, except UTC
declare
    v_schedule rowq.schedule;
begin
    if num_nonnulls(p_cron, p_interval_seconds) <> 1 then
        raise exception
            'RQ711 invalid_argument: exactly one of cron and interval_seconds is required'
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    perform rowq.internal_check_time_zone(p_time_zone);
    if p_max_ticks is null or p_max_ticks not between 1 and 1000 then
        raise exception 'RQ711 invalid_argument: max_ticks must be between 1 and 1000, got %',
            coalesce(p_max_ticks::text, 'null')
            using errcode = 'RQ711';
    end if;
    tick := coalesce(p_after, clock_timestamp());
    if tick not between '2000-01-01 00:00Z' and '2100-01-01 00:00Z' then
        raise exception
            'RQ711 invalid_argument: after must be between the years 2000 and 2100'
            using errcode = 'RQ711';
    end if;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.starts_at := tick;
    for v_number in 1 .. p_max_ticks loop
        tick := rowq.internal_next_tick(v_schedule, tick);
        exit when tick is null;
        return next;
    end loop;
end;
$$;
