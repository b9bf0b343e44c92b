procedure peek(
    p_queue_name   in varchar2,
    p_max_messages in number default 1,
    p_rows         out sys_refcursor
)
is
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue t_queue;
    v_lines rowq_lines;
begin
    internal_check_whole('max_messages', p_max_messages, 1, 1000, p_is_required => true);
    v_queue := internal_require_queue(p_queue_name);
    v_lines := internal_peek_ready(v_queue.queue_id, p_max_messages);

    open p_rows for
        select /*+ leading(n m) use_nl(m) index(m rowq_message_pk) */
               n.message_id, trunc(n.lane / 2) as priority, n.attempt, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, m.last_error
        from table(v_lines) n
        join rowq_message m
          on m.queue_id = v_queue.queue_id
         and m.message_id = n.message_id
        order by n.place;
end peek;
