create or replace function rowq.internal_is_past(p_moment timestamp with time zone)
returns boolean
language plpgsql
as $$
-- routine   internal_is_past
-- purpose   Return whether a moment has come, or lies so far ahead that only a wrong clock can have set it.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
begin
    return p_moment <= clock_timestamp() or p_moment > clock_timestamp() + interval '2 hours';
end;
$$;
