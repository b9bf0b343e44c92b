function internal_local_of(p_moment in timestamp, p_time_zone in varchar2)
return timestamp
is
-- routine   internal_local_of
-- purpose   Return what the clocks of a time zone show at a moment.
-- differs   no such helper elsewhere: other engines have an expression for it
begin
    return cast(from_tz(p_moment, '+00:00') at time zone p_time_zone as timestamp);
end internal_local_of;
