function internal_offset_change(
    p_from      in timestamp,
    p_to        in timestamp,
    p_time_zone in varchar2
)
return timestamp
is
-- routine   internal_offset_change
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    v_offset constant number := internal_offset_of(p_from, p_time_zone);
    -- Minutes after p_from.
    v_low    pls_integer := 0;
    v_high   pls_integer :=
        (internal_microseconds(p_to) - internal_microseconds(p_from)) / 60000000;
    v_middle pls_integer;
begin
    if internal_offset_of(p_to, p_time_zone) = v_offset then
        return null;
    end if;
    while v_high - v_low > 1 loop
        v_middle := trunc((v_low + v_high) / 2);
        if internal_offset_of(p_from + numtodsinterval(v_middle, 'minute'), p_time_zone)
            = v_offset
        then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return p_from + numtodsinterval(v_high, 'minute');
end internal_offset_change;
