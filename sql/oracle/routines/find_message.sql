procedure find_message(
    p_queue_name in varchar2,
    p_dedup_key  in varchar2,
    p_rows       out sys_refcursor
)
is
-- routine   find_message
-- version   1
-- purpose   Return the unfinished message with a dedup key, as get_message does.
-- promise   P12 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   may return a message that ends during the call
    -- No key is longer than 200 characters.
    v_key constant raw(804) := utl_raw.cast_to_raw(substr(p_dedup_key, 1, 201));
    v_queue      t_queue;
    v_message_id number;
begin
    if p_dedup_key is null then
        internal_refuse('dedup_key is required');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- No message has the id 0.
    select coalesce(max(d.message_id), 0) into v_message_id
    from rowq_dedup d
    where d.queue_id = v_queue.queue_id
      and d.dedup_key = v_key;
    get_message(p_queue_name, v_message_id, p_rows);
end find_message;
