function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number
is
-- routine   internal_seconds_since
-- purpose   Return the seconds from a moment to p_now; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return (internal_microseconds(p_now) - internal_microseconds(p_moment)) / 1000000;
end internal_seconds_since;
