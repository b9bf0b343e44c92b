function internal_from_microseconds(p_microseconds in number)
return timestamp
is
-- routine   internal_from_microseconds
-- purpose   Return the moment that is so many microseconds after the beginning of 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    -- Days are added by themselves, because numtodsinterval takes 2147483647 seconds at most and
    -- for more gives that many: the moment would stand still from the year 2038 on.
    return timestamp '1970-01-01 00:00:00'
        + numtodsinterval(trunc(p_microseconds / 86400000000), 'day')
        + numtodsinterval(mod(p_microseconds, 86400000000) / 1000000, 'second');
end internal_from_microseconds;
