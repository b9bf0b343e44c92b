procedure unbind_topic(
    p_queue_name    in varchar2,
    p_topic_pattern in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   unbind_topic
-- version   1
-- purpose   Remove a queue's pattern; messages already enqueued stay.
-- promise   P15 P35
-- locks     the table topic_binding against drop_queue; a row of it
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_error         varchar2(32767);
    v_queue         t_queue;
    v_key           raw(200);
    v_outcome       varchar2(20 char) := 'not_bound';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_error := internal_topic_error('topic_pattern', p_topic_pattern, true);
    if v_error is not null then
        internal_refuse(v_error);
    end if;
    v_queue := internal_lock_bindings(p_queue_name);
    v_key := utl_raw.cast_to_raw(p_topic_pattern);

    delete from rowq_topic_binding b
    where b.queue_id = v_queue.queue_id
      and b.pattern_key = v_key;
    if sql%rowcount > 0 then
        v_outcome := 'unbound';
    end if;

    open p_rows for
        select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end unbind_topic;
