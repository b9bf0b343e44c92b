create or replace function rowq.internal_wait_until(p_wait_seconds double precision)
returns timestamp with time zone
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   internal_wait_until
-- purpose   Return the moment that ends a wait; raise an error if the wait is too long.
-- promise   P15
-- errors    RQ711
-- differs   only where the caller's path reaches into dequeue_wait
begin
    if p_wait_seconds is null or p_wait_seconds not between 0 and 3600 then
        raise exception 'RQ711 invalid_argument: wait_seconds must be between 0 and 3600, got %',
            p_wait_seconds
            using errcode = 'RQ711';
    end if;
    return clock_timestamp() + make_interval(secs => p_wait_seconds);
end;
$$;
