procedure list_delayed(
    p_queue_name       in varchar2,
    p_after_due_at     in timestamp default null,
    p_after_message_id in number default 0,
    p_max_messages     in number default 100,
    p_rows             out sys_refcursor
)
is
-- routine   list_delayed
-- version   1
-- purpose   List delayed messages in the order in which they become due, without bodies.
-- promise   P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was committed late is listed once maintain has corrected its floor
    v_queue t_queue;
    v_from  timestamp(6);
    v_after number := coalesce(p_after_message_id, 0);
begin
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_after_due_at is null and v_after <> 0 then
        internal_refuse('after_message_id requires after_due_at');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Begin at the floor, to skip emptied index blocks.
    v_from := internal_from_microseconds(internal_read_floor(v_queue.queue_id, -2 /* delayed */));
    if p_after_due_at >= v_from then
        v_from := p_after_due_at;
    else
        v_after := 0;
    end if;

    open p_rows for
        select /*+ leading(h m) use_nl(m) index(m rowq_message_pk) */
               h.message_id, trunc(h.lane / 2) as priority, h.attempt, m.message_type, h.due_at,
               m.last_error
        from (
            -- Two ranges: one for both would read all messages due at the same time before the
            -- start.
            select x.queue_id, x.message_id, x.lane, x.attempt, x.due_at
            from (
                select /*+ index_rs_asc(d rowq_delayed_pk) */
                       d.queue_id, d.message_id, d.lane, d.attempt, d.due_at
                from rowq_delayed d
                where d.queue_id = v_queue.queue_id
                  and d.due_at = v_from
                  and d.message_id > v_after
                order by d.queue_id, d.due_at, d.message_id
                fetch first p_max_messages rows only
            ) x
            union all
            select y.queue_id, y.message_id, y.lane, y.attempt, y.due_at
            from (
                select /*+ index_rs_asc(d rowq_delayed_pk) */
                       d.queue_id, d.message_id, d.lane, d.attempt, d.due_at
                from rowq_delayed d
                where d.queue_id = v_queue.queue_id
                  and d.due_at > v_from
                order by d.queue_id, d.due_at, d.message_id
                fetch first p_max_messages rows only
            ) y
        ) h
        join rowq_message m
          on m.queue_id = h.queue_id
         and m.message_id = h.message_id
        order by h.due_at, h.message_id
        fetch first p_max_messages rows only;
end list_delayed;
