create or replace function rowq.internal_offset_change(
    p_from      timestamp with time zone,
    p_to        timestamp with time zone,
    p_time_zone text
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_offset_change
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
declare
    c_offset constant interval := p_from at time zone p_time_zone - p_from at time zone 'UTC';
    v_low    timestamp with time zone := p_from;
    v_high   timestamp with time zone := p_to;
    v_middle timestamp with time zone;
begin
    if v_high at time zone p_time_zone - v_high at time zone 'UTC' = c_offset then
        return null;
    end if;
    while v_high - v_low > interval '1 minute' loop
        v_middle := v_low
            + floor(extract(epoch from v_high - v_low) / 120) * interval '1 minute';
        if v_middle at time zone p_time_zone - v_middle at time zone 'UTC' = c_offset then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return v_high;
end;
$$;
