procedure resume_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   resume_queue
-- version   1
-- purpose   Start delivery again.
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
    where q.part_id = v_queue.part_id;
    if sql%rowcount = 0 then
        -- Dropped while this waited for it.
        internal_refuse_queue(p_queue_name);
    end if;
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select p_queue_name as queue_name, 'resumed' as outcome
        from dual;
end resume_queue;
