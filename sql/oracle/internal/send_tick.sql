procedure internal_send_tick(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule,
    p_tick       in timestamp,
    p_message_id out number,
    p_outcome    out varchar2
)
is
-- routine   internal_send_tick
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- promise   P30
-- locks     as internal_store
-- errors    RQ701 RQ711
-- differs   does not call enqueue, which would move the savepoint of the routine that runs
    v_fault varchar2(32767);
    v_new   t_new_messages;
begin
    -- Only the length of the body can have become wrong since the schedule was checked.
    v_fault := internal_body_fault(
        p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
    );
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;
    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_schedule.body, p_schedule.body_binary,
        p_schedule.message_type, internal_tick_headers(p_schedule, p_tick), p_schedule.priority,
        null, null, internal_tick_key(p_schedule), p_schedule.max_attempts,
        p_schedule.group_key, null, null, null
    );
    internal_store(p_queue.part_id, p_queue_name, v_new);
    p_message_id := v_new(1).message_id;
    p_outcome := v_new(1).outcome;
end internal_send_tick;
