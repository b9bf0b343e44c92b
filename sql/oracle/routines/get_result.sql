procedure get_result(
    p_queue_name in varchar2,
    p_message_id in number,
    p_rows       out sys_refcursor
)
is
-- routine   get_result
-- version   1
-- purpose   Return the outcome and result of a message, or its state if unfinished.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue       t_queue;
    v_state       varchar2(20 char);
    v_finished_at timestamp(6);
begin
    if p_message_id is null then
        internal_refuse('message_id is required');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    internal_read_result(v_queue.queue_id, p_message_id, v_state, v_finished_at);

    -- Without a result row, a dead message's error is in message.
    open p_rows for
        select /*+ index(r rowq_result_pk) index(m rowq_message_pk) */
               p_message_id as message_id, v_state as state, v_finished_at as finished_at,
               r.result,
               case when r.message_id is null then m.last_error else r.last_error end as last_error
        from dual
        left join rowq_result r
          on r.queue_id = v_queue.queue_id
         and r.message_id = p_message_id
         and v_finished_at is not null
        left join rowq_message m
          on m.queue_id = v_queue.queue_id
         and m.message_id = p_message_id
         and v_state = 'dead'
        where v_state is not null;
end get_result;
