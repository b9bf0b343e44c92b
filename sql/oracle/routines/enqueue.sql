procedure enqueue(
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
    p_producer_name       in varchar2 default null,
    p_rows                out sys_refcursor
)
is
-- routine   enqueue
-- version   1
-- purpose   Enqueue a message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; the rows of predecessors, without waiting; with a dedup key, waits for open
--           enqueues of it; with a group key, waits for a session that opens the group
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   an empty text is null to Oracle: pass empty_clob() for an empty body
    v_error         varchar2(32767);
    v_ids           rowq_ids;
    v_is_good       boolean;
    v_queue         t_queue;
    v_new           t_new_messages;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_error := internal_message_error(
        p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds, p_run_at,
        p_dedup_key, p_max_attempts, p_group_key, p_on_predecessor_dead, p_expire_seconds,
        p_producer_name
    );
    if p_predecessor_ids is not null and v_error is null then
        v_is_good := internal_is_id_list(p_predecessor_ids, v_ids);
        if not v_is_good then
            v_error := 'predecessor_ids must be a list of at most 10000 ids without nulls';
        end if;
    end if;
    if v_error is not null then
        internal_refuse(v_error);
    end if;
    v_queue := internal_require_queue(p_queue_name);
    v_error := internal_body_error(p_body, p_body_binary, v_queue.max_body_length);
    if v_error is not null then
        internal_refuse(v_error);
    end if;

    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_body, p_body_binary, p_message_type, p_headers,
        p_priority, p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
        v_ids, p_on_predecessor_dead, p_expire_seconds, p_producer_name
    );
    internal_store(v_queue.queue_id, p_queue_name, v_new);
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);

    open p_rows for
        select v_new(1).message_id as message_id, v_new(1).outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end enqueue;
