procedure pause_queue(
    p_queue_name in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   pause_queue
-- version   1
-- purpose   Stop the delivery of a queue; producers and finishing calls continue.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
begin
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
    set q.paused_at = coalesce(q.paused_at, sys_extract_utc(systimestamp))
    where q.queue_id = v_queue.queue_id;
    if sql%rowcount = 0 then
        -- The queue was dropped while this call waited for its row.
        internal_refuse_queue(p_queue_name);
    end if;

    open p_rows for
        select p_queue_name as queue_name, 'paused' as outcome
        from dual;
end pause_queue;
