function internal_to_minute(p_moment in timestamp)
return timestamp
is
-- routine   internal_to_minute
-- purpose   Return the moment at which the minute of a moment has begun.
-- differs   no such helper elsewhere: trunc makes a date of it, and dates may be rounded
begin
    return p_moment - numtodsinterval(extract(second from p_moment), 'second');
end internal_to_minute;
