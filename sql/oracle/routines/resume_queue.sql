procedure resume_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   resume_queue
-- version   1
-- purpose   Resume the delivery of a queue.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.paused_at = null
    where q.queue_id = v_queue.queue_id;
    if sql%rowcount = 0 then
        -- The queue was dropped while this call waited for its row.
        internal_refuse_queue(p_queue_name);
    end if;
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);

    open p_rows for
        select p_queue_name as queue_name, 'resumed' as outcome
        from dual;
end resume_queue;
