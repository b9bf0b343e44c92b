create or replace function rowq.internal_tick_headers(
    p_schedule rowq.schedule,
    p_tick     timestamp with time zone
)
returns jsonb
language plpgsql
as $$
-- routine   internal_tick_headers
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
begin
    if jsonb_typeof(p_schedule.headers) <> 'object' then
        return p_schedule.headers;
    end if;
    return coalesce(p_schedule.headers, '{}'::jsonb) || jsonb_build_object(
        'schedule', p_schedule.schedule_name,
        'tick', to_char(p_tick at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    );
end;
$$;
