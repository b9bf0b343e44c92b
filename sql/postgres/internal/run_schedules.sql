create or replace function rowq.internal_run_schedules(p_part_id integer, p_queue_name text)
returns void
language plpgsql
set timezone = 'UTC'
as $$
-- routine   internal_run_schedules
-- purpose   Run the schedules of a queue that are due and that no other session is running.
-- promise   P30 P31
-- locks     due schedule rows, tried only; as internal_run_due
-- differs   a caller in repeatable read or serializable leaves them to others
declare
    v_schedule rowq.schedule;
    v_is_late  boolean := false;
begin
    -- An old snapshot may show a tick that was run already.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return;
    end if;
    for v_schedule in
        select s.part_id, s.schedule_name, s.cron, s.interval_seconds, s.time_zone, s.missed,
               s.overlap, s.starts_at, s.ends_at, s.message_type, s.headers, s.priority,
               s.group_key, s.max_attempts, s.body, s.body_binary, s.is_paused, s.next_run_at,
               s.last_run_at, s.last_message_id, s.last_error
        from rowq.schedule s
        where s.part_id = p_part_id
          and s.next_run_at <= clock_timestamp()
        for update skip locked
    loop
        -- Wait for a producer that opens a group once a call, and no longer than a moment: after
        -- that the message joins its group when it is promoted, so that no tick is missed.
        if v_schedule.group_key is null then
            perform rowq.internal_run_due(v_schedule, p_queue_name, false);
            continue;
        end if;
        v_is_late := v_is_late or not rowq.internal_run_due(v_schedule, p_queue_name, false);
        if v_is_late then
            perform rowq.internal_run_due(v_schedule, p_queue_name, true);
        end if;
    end loop;
end;
$$;
