function internal_next_cron(
    p_bits      in varchar2,
    p_time_zone in varchar2,
    p_after     in timestamp
)
return timestamp
is
-- routine   internal_next_cron
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
    c_day    constant interval day to second := numtodsinterval(26, 'hour');
    c_minute constant interval day to second := numtodsinterval(1, 'minute');
    v_local  timestamp(6);
    v_next   timestamp(6);
    v_from   timestamp(6);
    v_moment timestamp(6);
    v_change timestamp(6);
begin
    if substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        v_local := internal_to_minute(internal_local_of(p_after, p_time_zone));
        loop
            v_local := internal_next_cron_local(p_bits, v_local + c_minute);
            if v_local is null then
                return null;
            end if;
            v_moment := internal_moment_of_local(v_local, p_time_zone);
            if v_moment > p_after then
                return v_moment;
            end if;
        end loop;
    end if;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    v_from := internal_to_minute(p_after) + c_minute;
    loop
        v_local := internal_local_of(v_from, p_time_zone);
        v_next := internal_next_cron_local(p_bits, v_local);
        if v_next is null then
            return null;
        end if;
        v_moment := v_from + (v_next - v_local);
        v_change := internal_offset_change(
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
end internal_next_cron;
