procedure enqueue_batch(
    p_queue_name in varchar2,
    p_messages   in clob,
    p_rows       out sys_refcursor
)
is
-- routine   enqueue_batch
-- version   1
-- purpose   Enqueue many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     as enqueue; dedup and group keys in key order
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_new           t_new_messages;
    v_lines         rowq_lines := rowq_lines();
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_new := internal_parse_messages(p_messages, v_queue.max_body_length);
    internal_store(v_queue.queue_id, p_queue_name, v_new);
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    v_lines.extend(v_new.count);
    for i in 1 .. v_new.count loop
        v_lines(i) := rowq_line(i, v_new(i).message_id, null, null, v_new(i).outcome, null);
    end loop;

    open p_rows for
        select n.place as position, n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end enqueue_batch;
