create or replace function rowq.internal_from_microseconds(p_microseconds bigint)
returns timestamp with time zone
language sql
immutable
as $$
-- routine   internal_from_microseconds
-- purpose   Return the moment that is so many microseconds after the beginning of 1970.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
select timestamp with time zone 'epoch' + p_microseconds * interval '1 microsecond'
$$;
