create or replace function rowq.internal_next_cron(
    p_bits      text,
    p_time_zone text,
    p_after     timestamp with time zone
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_next_cron
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
declare
    c_day    constant interval := interval '26 hours';
    v_local  timestamp;
    v_next   timestamp;
    v_from   timestamp with time zone;
    v_moment timestamp with time zone;
    v_change timestamp with time zone;
begin
    if substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        v_local := date_trunc('minute', p_after at time zone p_time_zone);
        loop
            v_local := rowq.internal_next_cron_local(p_bits, v_local + interval '1 minute');
            exit when v_local is null;
            v_moment := rowq.internal_moment_of_local(v_local, p_time_zone);
            exit when v_moment > p_after;
        end loop;
        return case when v_local is not null then v_moment end;
    end if;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    v_from := date_trunc('minute', p_after) + interval '1 minute';
    loop
        v_local := v_from at time zone p_time_zone;
        v_next := rowq.internal_next_cron_local(p_bits, v_local);
        exit when v_next is null;
        v_moment := v_from + extract(epoch from v_next - v_local) * interval '1 second';
        v_change := rowq.internal_offset_change(
            v_from, least(v_moment, v_from + c_day), p_time_zone
        );
        if v_change is not null then
            v_from := v_change;
        elsif v_moment <= v_from + c_day then
            return v_moment;
        else
            v_from := greatest(v_from + c_day, v_moment - c_day);
        end if;
    end loop;
    return null;
end;
$$;
