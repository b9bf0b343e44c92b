procedure publish(
    p_topic          in varchar2,
    p_body           in clob default null,
    p_body_binary    in blob default null,
    p_message_type   in varchar2 default null,
    p_headers        in clob default null,
    p_priority       in number default 5,
    p_delay_seconds  in number default null,
    p_run_at         in timestamp default null,
    p_dedup_key      in varchar2 default null,
    p_max_attempts   in number default null,
    p_group_key      in varchar2 default null,
    p_expire_seconds in number default null,
    p_producer_name  in varchar2 default null,
    p_rows           out sys_refcursor
)
is
-- routine   publish
-- version   1
-- purpose   Enqueue a message to each queue bound to a topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue, in the order of queue names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   an empty text is null to Oracle: pass empty_clob() for an empty body
    v_error         varchar2(32767);
    v_new           t_new_messages;
    v_sent          rowq_sent_list;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    -- Check the arguments even if no queue is bound. The length of a body depends on the queue.
    v_error := coalesce(
        internal_topic_error('topic', p_topic, false),
        internal_message_error(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, null, p_expire_seconds,
            p_producer_name
        )
    );
    if v_error is not null then
        internal_refuse(v_error);
    end if;

    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_body, p_body_binary,
        coalesce(p_message_type, p_topic), p_headers, p_priority, p_delay_seconds, p_run_at,
        p_dedup_key, p_max_attempts, p_group_key, null, null, p_expire_seconds, p_producer_name
    );
    v_new(1).topic := p_topic;
    internal_publish(v_new, v_sent);

    open p_rows for
        select n.queue_name, n.message_id, n.outcome
        from table(v_sent) n
        order by n.line_no;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end publish;
