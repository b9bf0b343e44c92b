create or replace function rowq.internal_check_time_zone(p_time_zone text)
returns void
language plpgsql
as $$
-- routine   internal_check_time_zone
-- purpose   Refuse a time zone that the server does not know by this name.
-- promise   P15
-- errors    RQ711
begin
    -- The view reads every zone from disk.
    if p_time_zone = 'UTC' then
        return;
    end if;
    -- A name without a slash, such as CET, would be read as an abbreviation, which has no summer
    -- time and which a session may set.
    if p_time_zone not like '%/%' or p_time_zone is null or not exists (
        select
        from pg_timezone_names z
        where z.name = p_time_zone
    ) then
        raise exception 'RQ711 invalid_argument: time_zone must be a name such as Europe/Berlin '
            'that the server knows, got %', coalesce(left(p_time_zone, 100), 'null')
            using errcode = 'RQ711';
    end if;
end;
$$;
