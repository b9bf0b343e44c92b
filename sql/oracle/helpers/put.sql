function put(
    p_queue_name          in varchar2,
    p_body                in clob default null,
    p_body_binary         in blob default null,
    p_message_type        in varchar2 default null,
    p_headers             in clob default null,
    p_priority            in number default 5,
    p_delay_seconds       in number default null,
    p_run_at              in timestamp default null,
    p_dedup_key           in varchar2 default null,
    p_max_attempts        in number default null,
    p_group_key           in varchar2 default null,
    p_predecessor_ids     in clob default null,
    p_on_predecessor_dead in varchar2 default null,
    p_expire_seconds      in number default null,
    p_producer_name       in varchar2 default null
)
return number
is
-- routine   put
-- version   1
-- purpose   Enqueue a message for callers in PL/SQL; return its id, for a duplicate the first message's.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   only here: a caller in PL/SQL need not fetch a cursor
    v_rows    sys_refcursor;
    v_id      rowq_message.message_id%type;
    v_outcome varchar2(20 char);
begin
    enqueue(
        p_queue_name, p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
        p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
        p_on_predecessor_dead, p_expire_seconds, p_producer_name, v_rows
    );
    fetch v_rows into v_id, v_outcome;
    close v_rows;
    return v_id;
end put;
