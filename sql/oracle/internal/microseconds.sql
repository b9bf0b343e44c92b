function internal_microseconds(p_moment in timestamp)
return number
is
-- routine   internal_microseconds
-- purpose   Return a moment as microseconds since 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
    v_since interval day(9) to second(6);
begin
    v_since := p_moment - timestamp '1970-01-01 00:00:00';
    return extract(day from v_since) * 86400000000
        + extract(hour from v_since) * 3600000000
        + extract(minute from v_since) * 60000000
        + round(extract(second from v_since) * 1000000);
end internal_microseconds;
