create or replace function rowq.internal_moment_of_local(
    p_local     timestamp without time zone,
    p_time_zone text
)
returns timestamp with time zone
language plpgsql
as $$
-- routine   internal_moment_of_local
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
declare
    c_as_utc constant timestamp with time zone := p_local at time zone 'UTC';
    c_day    constant interval := interval '24 hours';
    -- The moment by the offset of the day before, and by that of the day after.
    v_before timestamp with time zone;
    v_after  timestamp with time zone;
begin
    v_before := c_as_utc - (
        (c_as_utc - c_day) at time zone p_time_zone - (c_as_utc - c_day) at time zone 'UTC'
    );
    if v_before at time zone p_time_zone = p_local then
        return v_before;
    end if;
    v_after := c_as_utc - (
        (c_as_utc + c_day) at time zone p_time_zone - (c_as_utc + c_day) at time zone 'UTC'
    );
    if v_after at time zone p_time_zone = p_local then
        return v_after;
    end if;
    return rowq.internal_offset_change(
        least(v_before, v_after), greatest(v_before, v_after), p_time_zone
    );
end;
$$;
