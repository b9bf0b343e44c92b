create or replace function rowq.internal_send_tick(
    p_schedule   rowq.schedule,
    p_queue_name text,
    p_tick       timestamp with time zone,
    out o_message_id bigint,
    out o_outcome    text
)
language plpgsql
as $$
-- routine   internal_send_tick
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- promise   P30
-- locks     as enqueue
-- errors    RQ701 RQ711
begin
    select e.message_id, e.outcome into o_message_id, o_outcome
    from rowq.enqueue(
        p_queue_name   => p_queue_name,
        p_body         => p_schedule.body,
        p_body_binary  => p_schedule.body_binary,
        p_message_type => p_schedule.message_type,
        p_headers      => rowq.internal_tick_headers(p_schedule, p_tick),
        p_priority     => p_schedule.priority,
        p_dedup_key    => case
            when not p_schedule.overlap then 'schedule:' || p_schedule.schedule_name
        end,
        p_max_attempts => p_schedule.max_attempts,
        p_group_key    => p_schedule.group_key
    ) e;
end;
$$;
