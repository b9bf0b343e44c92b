function internal_offset_of(p_moment in timestamp, p_time_zone in varchar2)
return number
is
-- routine   internal_offset_of
-- purpose   Return how many minutes the clocks of a time zone are ahead of UTC at a moment.
-- differs   no such helper elsewhere: other engines have an expression for it
begin
    return (
        internal_microseconds(internal_local_of(p_moment, p_time_zone))
        - internal_microseconds(p_moment)
    ) / 60000000;
end internal_offset_of;
