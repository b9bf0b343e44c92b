create or replace function rowq.internal_from_microseconds(p_microseconds bigint)
returns timestamp with time zone
language sql
immutable
as $$
-- routine   internal_from_microseconds
-- purpose   A moment from microseconds since 1970, exactly.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
select timestamp with time zone 'epoch' + p_microseconds * interval '1 microsecond'
$$;
