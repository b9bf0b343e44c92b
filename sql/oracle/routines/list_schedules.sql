procedure list_schedules(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
-- routine   list_schedules
-- version   1
-- purpose   List the schedules of one queue or all, without bodies and headers.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    v_queue t_queue;
begin
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select q.queue_name, s.schedule_name, s.cron, s.interval_seconds, s.time_zone,
               s.is_paused, s.next_run_at, s.last_run_at, s.last_message_id, s.last_error,
               s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type, s.priority,
               s.max_attempts, s.group_key, s.counts_from
        from rowq_queue q
        join rowq_schedule s on s.queue_id = q.queue_id
        where v_queue.queue_id is null
           or q.queue_id = v_queue.queue_id
        order by q.queue_key, s.schedule_key;
end list_schedules;
