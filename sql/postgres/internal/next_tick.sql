create or replace function rowq.internal_next_tick(
    p_schedule rowq.schedule,
    p_after    timestamp with time zone
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_next_tick
-- purpose   Return the first tick of a schedule after a moment; null where there is none.
-- promise   P31
declare
    c_after  constant timestamp with time zone
        := greatest(p_after, p_schedule.starts_at - interval '1 microsecond');
    v_step   bigint;
    v_passed bigint;
    v_count  bigint := 0;
    v_tick   timestamp with time zone;
begin
    if p_schedule.cron is not null then
        v_tick := rowq.internal_next_cron(
            rowq.internal_parse_cron(p_schedule.cron), p_schedule.time_zone, c_after
        );
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := extract(epoch from c_after - p_schedule.starts_at) * 1000000;
        if v_passed >= 0 then
            v_count := v_passed / v_step + 1;
        end if;
        v_tick := p_schedule.starts_at + v_count * v_step * interval '1 microsecond';
    end if;
    -- Clients read no year beyond 9999.
    if v_tick > p_schedule.ends_at or v_tick >= '9999-12-31 00:00Z' then
        return null;
    end if;
    return v_tick;
end;
$$;
