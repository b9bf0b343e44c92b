create or replace function rowq.internal_send_tick(
    p_schedule   rowq.schedule,
    p_queue_name text,
    p_tick       timestamp with time zone,
    p_is_late    boolean default false,
    out o_message_id bigint,
    out o_outcome    text
)
language plpgsql
as $$
-- routine   internal_send_tick
-- purpose   Add the message of a schedule, whose row the caller holds, to its queue; the outcome is enqueue's. p_is_late lets it join its group when it is promoted.
-- promise   P30
-- locks     as enqueue; a dedup row
-- errors    RQ701 RQ711
declare
    v_dedup_key constant text := 'schedule:' || p_schedule.schedule_name;
begin
    -- Enqueue refuses such keys, so that no producer can stop a schedule by one.
    if not p_schedule.overlap then
        select d.message_id, 'duplicate' into o_message_id, o_outcome
        from rowq.dedup d
        where d.part_id = p_schedule.part_id
          and d.dedup_key = v_dedup_key;
        if found then
            return;
        end if;
    end if;

    select e.message_id, e.outcome into o_message_id, o_outcome
    from rowq.enqueue(
        p_queue_name    => p_queue_name,
        p_body          => p_schedule.body,
        p_body_binary   => p_schedule.body_binary,
        p_message_type  => p_schedule.message_type,
        p_headers       => rowq.internal_tick_headers(p_schedule, p_tick),
        p_priority      => p_schedule.priority,
        p_delay_seconds => case when p_is_late then 0.001 end,
        p_max_attempts  => p_schedule.max_attempts,
        p_group_key     => p_schedule.group_key
    ) e;
    if not p_schedule.overlap then
        insert into rowq.dedup (part_id, message_id, dedup_key)
        values (p_schedule.part_id, o_message_id, v_dedup_key);
        update rowq.message m
        set dedup_key = v_dedup_key
        where m.part_id = p_schedule.part_id
          and m.message_id = o_message_id;
    end if;
end;
$$;
