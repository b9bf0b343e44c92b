function internal_read_schedule(p_part_id in number, p_schedule_key in raw)
return t_schedule
is
-- routine   internal_read_schedule
-- purpose   Return a schedule; its part_id is null where there is none.
-- differs   no such helper elsewhere: part of require_schedule and run_schedules
    v_schedule t_schedule;
    cursor keyed is
        select s.part_id, s.schedule_key, s.schedule_name, s.cron, s.interval_seconds,
               s.time_zone, s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type,
               s.priority, s.group_key, s.max_attempts, s.is_paused, s.next_run_at, s.headers,
               s.body, s.body_binary
        from rowq_schedule s
        where s.part_id = p_part_id
          and s.schedule_key = p_schedule_key;
begin
    open keyed;
    fetch keyed into v_schedule;
    close keyed;
    return v_schedule;
end internal_read_schedule;
