function internal_moment_of_local(p_local in timestamp, p_time_zone in varchar2)
return timestamp
is
-- routine   internal_moment_of_local
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    c_day constant interval day to second := numtodsinterval(1, 'day');
    -- The moment by the offset of the day before, and by that of the day after.
    v_before timestamp(6);
    v_after  timestamp(6);
begin
    -- Only moments are converted, because the server refuses a time in a gap (ORA-01878).
    v_before := p_local
        - numtodsinterval(internal_offset_of(p_local - c_day, p_time_zone), 'minute');
    if internal_local_of(v_before, p_time_zone) = p_local then
        return v_before;
    end if;
    v_after := p_local
        - numtodsinterval(internal_offset_of(p_local + c_day, p_time_zone), 'minute');
    if internal_local_of(v_after, p_time_zone) = p_local then
        return v_after;
    end if;
    return internal_offset_change(
        least(v_before, v_after), greatest(v_before, v_after), p_time_zone
    );
end internal_moment_of_local;
