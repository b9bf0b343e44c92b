procedure publish_batch(
    p_messages in clob,
    p_rows     out sys_refcursor
)
is
-- routine   publish_batch
-- version   1
-- purpose   Publish many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue_batch, in the order of queue names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_sent          rowq_sent_list;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_publish(internal_parse_messages(p_messages, null, true), v_sent);

    open p_rows for
        select n.place as position, n.queue_name, n.message_id, n.outcome
        from table(v_sent) n
        order by n.line_no;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end publish_batch;
