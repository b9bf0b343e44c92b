create or replace function rowq.internal_require_schedule(p_part_id integer, p_schedule_name text)
returns rowq.schedule
language plpgsql
as $$
-- routine   internal_require_schedule
-- purpose   Return a schedule and hold it to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
declare
    v_schedule rowq.schedule;
begin
    if p_schedule_name is null then
        raise exception 'RQ711 invalid_argument: schedule_name is missing'
            using errcode = 'RQ711';
    end if;
    select s.part_id, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.missed,
           s.overlap, s.starts_at, s.ends_at, s.message_type, s.headers, s.priority,
           s.group_key, s.max_attempts, s.body, s.body_binary, s.is_paused, s.next_run_at,
           s.last_run_at, s.last_message_id, s.last_error
    into v_schedule
    from rowq.schedule s
    where s.part_id = p_part_id
      and s.schedule_name = p_schedule_name
    for update;
    if not found then
        raise exception 'RQ702 schedule_not_found: %', left(p_schedule_name, 100)
            using errcode = 'RQ702';
    end if;
    return v_schedule;
end;
$$;
